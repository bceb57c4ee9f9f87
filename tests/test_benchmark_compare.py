from __future__ import annotations

import json
from math import comb
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from result_helpers import agentmemory, question, result, saved
from typer.testing import CliRunner

from benchmark.compare import Change, app, paired, table
from benchmark.errors import BenchError
from benchmark.results import Question
from benchmark.systems import System, ours, read_system

TEN = [f"s{place}" for place in range(1, 11)]


def system(*questions: Question) -> System:
    return ours(result(questions))


def test_the_earlier_first_gold_session_wins() -> None:
    a = system(question("1", ["gold"]), question("2", ["x", "gold"]), question("3", ["x", "y", "gold"]))
    b = system(question("1", ["x", "gold"]), question("2", ["y", "gold"]), question("3", ["gold"]))
    found = paired(a, b)
    assert (found.n, found.wins, found.ties, found.losses) == (3, 1, 1, 1)
    assert found.changes == [Change("1", "user", 1, 2), Change("3", "user", 3, 1)]


def test_beside_a_peer_ranks_beyond_ten_are_alike_on_both_sides(tmp_path: Path) -> None:
    a = system(question("1", [*TEN, "gold"]), question("2", []), question("3", [*TEN[:9], "gold"]))
    b = read_system(agentmemory(tmp_path / "peer.json", {"1": TEN, "2": [*TEN, "x", "gold"], "3": TEN}))
    found = paired(a, b)
    assert (found.depth, found.wins, found.ties, found.losses) == (10, 1, 2, 0)
    assert found.changes == [Change("3", "user", 10, 11)]


def test_two_results_of_ours_are_paired_on_all_ranks() -> None:
    a = system(question("1", [*TEN, "gold"]), question("2", []), question("3", TEN))
    b = system(question("1", TEN), question("2", [*TEN, "x", "gold"]), question("3", []))
    found = paired(a, b)
    assert (found.depth, found.wins, found.ties, found.losses) == (12, 1, 1, 1)
    assert found.changes == [Change("1", "user", 11, 13), Change("2", "user", 13, 12)]  # 13: found by neither's deepest, 12
    assert "beyond 12 counted as 13" in table("a", "b", found)


def test_only_scored_questions_of_both_sides_are_paired() -> None:
    a = system(question("1", ["gold"]), question("2_abs", ["gold"]), question("3", ["gold"]))
    assert paired(a, system(question("1", ["gold"]), question("2_abs", []), question("4", ["gold"]))).n == 1


def test_abstentions_alone_are_refused() -> None:
    with pytest.raises(BenchError, match="no scored question"):
        paired(system(question("1_abs", [])), system(question("1_abs", [])))


def test_deltas_are_means_of_paired_differences() -> None:
    a = system(question("1", ["gold"]), question("2", ["x", "gold"]))
    b = system(question("1", ["x", "gold"]), question("2", ["x", "gold"]))
    mrr = paired(a, b).metrics["mrr@10"]
    assert (mrr.a, mrr.b) == ((1 + 1 / 2) / 2, (1 / 2 + 1 / 2) / 2)
    assert (mrr.low, mrr.high) == (0, 1 - 1 / 2)  # two questions, so each can be drawn twice


def test_the_sign_test_leaves_ties_out() -> None:
    a = system(*(question(str(number), ["gold"]) for number in range(6)))
    b = system(*(question(str(number), ["x", "gold"] if number < 5 else ["gold"]) for number in range(6)))
    assert paired(a, b).p == pytest.approx(2 * comb(5, 0) / 2**5)


def test_agreement_counts_questions_alike_at_five_and_sessions_shared() -> None:
    a = system(question("1", ["gold", "x", "y"]), question("2", TEN), question("3_abs", []))
    b = system(question("1", ["y", "gold", "z"]), question("2", ["gold", *TEN[:9]]), question("3_abs", TEN))
    found = paired(a, b)
    assert (found.n, found.n_all, found.same_any5) == (2, 3, 2)  # unscored questions agree or differ like any other
    assert found.shared == (2 + 9 + 0) / 3


def test_locomo_is_compared_by_turns() -> None:
    def locomo(reciprocal: float) -> System:
        metrics = {"mrr": reciprocal, "any@10": 1.0, "recall@10": reciprocal, "session_any@5": 1.0}
        one = question("1", ["gold"])
        one["metrics"] = metrics
        return ours(result([one], benchmark="locomo"))

    found = paired(locomo(1 / 2), locomo(1 / 3))
    assert (found.wins, found.changes) == (1, [Change("1", "user", 2, 3)])
    assert list(found.metrics) == ["any@10", "recall@10", "mrr", "session_any@5"]


ranks = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=12)


@given(ranks)
def test_the_other_way_round_wins_are_losses(places: list[tuple[int, int]]) -> None:
    def side(which: int) -> System:
        return system(*(question(str(number), [*"abcdefghijkl"[: both[which]], "gold"]) for number, both in enumerate(places)))

    found, mirrored = paired(side(0), side(1)), paired(side(1), side(0))
    assert (found.wins, found.losses, found.p) == (mirrored.losses, mirrored.wins, mirrored.p)
    assert found.wins + found.ties + found.losses == found.n == len(places)
    assert (found.same_any5, found.shared) == (mirrored.same_any5, mirrored.shared)


def test_the_table_reads_as_a_verdict() -> None:
    text = table("ours", "peer", paired(system(question("1", ["gold"])), system(question("1", TEN))))
    assert "1 questions: A wins 1, ties 0, loses 0 (sign test p 1.000)" in text
    assert [line.split() for line in text.splitlines() if line.startswith("recall_any@5")] == [
        ["recall_any@5", "100.0", "0.0", "+100.0", "[+100.0,", "+100.0]"]
    ]
    assert text.splitlines()[-1].split() == ["1", ">1", "1", "(user)"]


def test_the_command_sets_our_result_against_a_peers_rows(tmp_path: Path) -> None:
    a = saved(tmp_path / "a.json", result([question("1", ["gold"])]))
    b = agentmemory(tmp_path / "b.json", {"1": ["x", "gold"]})
    run = CliRunner().invoke(app, [str(a), str(b), "--json"])
    assert run.exit_code == 0, run.stderr
    found = json.loads(run.stdout.splitlines()[-1])
    assert {name: found[name] for name in ("a", "b", "n", "wins", "changes")} == {
        "a": "default (0123456)",
        "b": "agentmemory bm25",
        "n": 1,
        "wins": 1,
        "changes": [{"id": "1", "type": "user", "a": 1, "b": 2}],
    }


def test_what_cannot_be_compared_is_said_with_exit_code_two(tmp_path: Path) -> None:
    run = CliRunner().invoke(app, [str(tmp_path / "nowhere.json"), str(tmp_path / "nowhere.json")])
    assert (run.exit_code, run.stdout) == (2, "")
    assert "compare: " in run.stderr
    assert "nowhere.json" in run.stderr
