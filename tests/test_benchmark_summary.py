from __future__ import annotations

import pytest

from benchmark.summary import Outcome, summarise, table

OUTCOMES = [
    Outcome("1", "user", False, frozenset({"a"}), ("a", "b")),
    Outcome("2", "user", False, frozenset({"a", "c"}), ("b", "a")),
    Outcome("3", "temporal", False, frozenset({"a"}), ("b",)),
    Outcome("4_abs", "temporal", True, frozenset({"a"}), ("b", "c", "a")),
]


def test_headline_figures_leave_abstentions_out() -> None:
    summary = summarise(OUTCOMES).as_json()
    assert summary["n"] == 3
    assert summary["recall_any@5"] == pytest.approx((1 + 1 + 0) / 3)
    assert summary["recall_all@5"] == pytest.approx((1 + 0 + 0) / 3)
    assert summary["mrr"] == pytest.approx((1 + 1 / 2 + 0) / 3)


def test_means_with_abstentions_stand_beside_them() -> None:
    overall = summarise(OUTCOMES).all
    assert overall["n"] == 4
    assert overall["mrr"] == pytest.approx((1 + 1 / 2 + 0 + 1 / 3) / 4)


def test_types_count_questions_without_abstentions() -> None:
    types = summarise(OUTCOMES).types
    assert {name: (means["n"], means["recall_any@1"]) for name, means in types.items()} == {
        "temporal": (1, 0),
        "user": (2, (1 + 0) / 2),
    }


def test_abstentions_alone_give_no_headline_figure() -> None:
    summary = summarise(OUTCOMES[3:])
    assert summary.scored == {"n": 0}
    assert summary.as_json()["n"] == 0
    assert "with abstentions" in table(summary)


def test_the_table_has_a_row_a_group_and_a_column_a_metric() -> None:
    header, *rows = table(summarise(OUTCOMES)).splitlines()
    assert header.split() == ["n", "any@1", "any@5", "any@10", "any@20", "all@5", "ndcg@10", "ndcg_lme@10", "mrr"]
    assert [row.split()[0] for row in rows] == ["without", "with", "temporal", "user"]
    assert rows[3].split()[:3] == ["user", "2", f"{100 * (1 + 0) / 2:.1f}"]
