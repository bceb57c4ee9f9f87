from __future__ import annotations

import pytest

from benchmark.results import Result
from benchmark.summary import Outcome, Summary, summarise, table

OUTCOMES = [
    Outcome("1", "user", False, frozenset({"a"}), ("a", "b")),
    Outcome("2", "user", False, frozenset({"a", "c"}), ("b", "a")),
    Outcome("3", "temporal", False, frozenset({"a"}), ("b",)),
    Outcome("4_abs", "temporal", True, frozenset({"a"}), ("b", "c", "a")),
]


def summary(outcomes: list[Outcome]) -> Summary:
    return summarise([outcome.question() for outcome in outcomes])


def shown(outcomes: list[Outcome]) -> list[list[str]]:
    """The table's lines, by their words."""
    found = summary(outcomes)
    result = Result("", {}, {"scored": found.scored, "all": found.all}, found.intervals, found.types, {}, [])
    return [line.split() for line in table(result).splitlines()]


def test_scored_figures_leave_abstentions_out() -> None:
    scored = summary(OUTCOMES).scored
    assert scored["n"] == 3
    assert scored["recall_any@5"] == pytest.approx((1 + 1 + 0) / 3)
    assert scored["recall_all@5"] == pytest.approx((1 + 0 + 0) / 3)
    assert scored["mrr"] == pytest.approx((1 + 1 / 2 + 0) / 3)


def test_figures_with_abstentions_stand_beside_them() -> None:
    overall = summary(OUTCOMES).all
    assert overall["n"] == 4
    assert overall["mrr"] == pytest.approx((1 + 1 / 2 + 0 + 1 / 3) / 4)


def test_types_count_scored_questions() -> None:
    types = summary(OUTCOMES).types
    assert {name: (means["n"], means["recall_any@1"]) for name, means in types.items()} == {
        "temporal": (1, 0),
        "user": (2, (1 + 0) / 2),
    }


def test_intervals_hold_the_figure_of_the_scored_questions() -> None:
    found = summary(OUTCOMES)
    low, high = found.intervals["mrr"]
    assert 0 <= low < found.scored["mrr"] < high <= 1


def test_abstentions_alone_give_no_scored_figure() -> None:
    found = summary(OUTCOMES[3:])
    assert (found.scored, found.intervals, found.types) == ({"n": 0}, {}, {})


def test_a_question_keeps_ten_sessions_and_every_gold_rank() -> None:
    ranked = tuple(f"s{rank}" for rank in range(1, 13))
    question = Outcome("q", "t", False, frozenset({"s12", "s2", "absent"}), ranked).question()
    assert question["ranked"] == list(ranked[:10])
    assert question["gold_ranks"] == [2, 12]
    assert question["metrics"]["recall_any@3"] == 1
    assert question["metrics"]["recall_all@20"] == 0
    assert question["turn"] is None


def test_turns_that_hold_the_answer_are_scored_as_hits_and_as_what_is_read() -> None:
    turns = tuple((0, position) for position in range(12))
    evidence = frozenset({(0, 2), (0, 7), (1, 0)})
    question = Outcome("q", "t", False, frozenset({"a"}), ("a",), turns, evidence, seen=7).question()
    assert question["turn"] == {"gold": 3, "gold_ranks": [3, 8]}
    found = {name: question["metrics"][name] for name in ("turn_any@5", "turn_recall@5", "turn_recall@10", "evidence@50000chars")}
    assert found == {"turn_any@5": 1, "turn_recall@5": 1 / 3, "turn_recall@10": 2 / 3, "evidence@50000chars": 1 / 3}


def test_a_mean_is_taken_over_the_questions_that_have_the_metric() -> None:
    turns = ((0, 0), (0, 1))
    marked = Outcome("1", "t", False, frozenset({"a"}), ("a",), turns, frozenset({(0, 1)}), 2, 1.0)
    unmarked = Outcome("2", "t", False, frozenset({"a"}), ("a",), turns)
    means = summary([marked, unmarked]).scored
    assert (means["n"], means["turn_recall@5"], means["containment"]) == (2, 1 / 1, 1 / 1)
    assert (means["n_turn_recall@5"], means["n_containment"]) == (1, 1)
    assert "n_mrr" not in means
    assert shown([marked, unmarked])[1][-3:] == ["100.0", "(n", "1)"]


def test_the_table_has_a_row_a_group_and_a_column_a_metric() -> None:
    header, *rows = shown(OUTCOMES)
    assert header[:5] == ["n", "any@1", "any@5", "any@10", "all@5"]
    assert [row[0] for row in rows] == ["scored", "95%", "all", "temporal", "user"]
    assert rows[4][:3] == ["user", "2", f"{100 * (1 + 0) / 2:.1f}"]


def test_a_group_without_questions_has_a_row_of_dashes() -> None:
    _, scored, *_ = shown(OUTCOMES[3:])
    assert scored[:3] == ["scored", "0", "-"]
