from __future__ import annotations

from pathlib import Path

import pytest
from result_helpers import agentmemory, question, result

from benchmark.results import Question
from benchmark.standings import columns, headings, label, markdown, standings
from benchmark.systems import ours, read_system

TEN = [f"s{place}" for place in range(1, 11)]
QUESTIONS = [
    question("1", ["gold"]),
    question("2", ["x", "gold"], type="temporal"),
    question("3", [], type="temporal"),
    question("4_abs", ["gold"]),
]


def locomo(id: str, **metrics: float) -> Question:
    one = question(id, ["gold"])
    one["metrics"] = metrics
    return one


def test_means_are_of_the_scored_questions_and_of_all() -> None:
    (one,) = standings([ours(result(QUESTIONS))])
    assert (one.n, one.n_all) == (3, 4)
    assert one.means["mrr"] == pytest.approx((1 + 1 / 2 + 0) / 3)
    assert one.all_means["mrr"] == pytest.approx((1 + 1 / 2 + 0 + 1) / 4)
    assert {type: means["mrr"] for type, means in one.types.items()} == {"temporal": (1 / 2 + 0) / 2, "user": 1}


def test_intervals_hold_their_mean_within_the_range_of_the_values() -> None:
    (one,) = standings([ours(result(QUESTIONS))])
    low, high = one.intervals["mrr"]
    assert 0 <= low < one.means["mrr"] < high <= 1


def test_systems_stand_side_by_side_on_the_questions_both_have(tmp_path: Path) -> None:
    peer = read_system(agentmemory(tmp_path / "peer.json", {"2": ["gold"], "9": []}))
    mine, theirs = standings([ours(result(QUESTIONS)), peer])
    assert (mine.n, theirs.n) == (1, 1)
    assert (mine.means["recall_any@1"], theirs.means["recall_any@1"]) == (0, 1)


def test_a_metric_counts_the_questions_that_have_it() -> None:
    (one,) = standings([ours(result([locomo("1", mrr=1.0, containment=1.0), locomo("2", mrr=0.5)], benchmark="locomo"))])
    assert one.means == {"mrr": (1 + 0.5) / 2, "containment": 1}
    assert (one.n, one.counts) == (2, {"mrr": 2, "containment": 1})
    assert headings([one], ["mrr", "containment"]) == ["mrr", "containment (n 1)"]


def test_a_table_has_one_mrr_that_every_system_can_be_held_to(tmp_path: Path) -> None:
    mine = ours(result(QUESTIONS))
    peer = read_system(agentmemory(tmp_path / "peer.json", {"1": ["gold"]}))
    assert [name for name in columns(standings([mine])) if "mrr" in name] == ["mrr"]
    assert [name for name in columns(standings([mine, peer])) if "mrr" in name] == ["mrr@10"]


def test_the_markdown_table_has_a_row_a_system_and_one_with_the_unscored() -> None:
    header, rule, scored, everything = markdown(standings([ours(result(QUESTIONS))])).splitlines()
    assert header.startswith("| system | n | any@1 | any@5 |")
    assert rule.startswith("| :-- | --: |")
    assert scored.startswith(f"| default (0123456) | 3 | {100 * 1 / 3:.1f} [")
    assert everything.startswith(f"| – the unscored too | 4 | {100 * 2 / 4:.1f} | {100 * 3 / 4:.1f} |")
    assert len({line.count("|") for line in (header, rule, scored, everything)}) == 1


def test_without_unscored_questions_there_is_one_row() -> None:
    assert len(markdown(standings([ours(result(QUESTIONS[:3]))])).splitlines()) == 3


def test_a_name_cannot_break_the_table() -> None:
    lines = markdown(standings([ours(result(QUESTIONS, profile="a|b"))])).splitlines()
    assert lines[2].startswith("| a/b (0123456) |")


def test_labels_are_short_where_they_stay_clear() -> None:
    assert [label(name) for name in ("recall_any@5", "recall_all@5", "recall@10", "mrr")] == [
        "any@5",
        "all@5",
        "recall@10",
        "mrr",
    ]
