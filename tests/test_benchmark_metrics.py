from __future__ import annotations

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark.metrics import (
    gold_ranks,
    ndcg_at_k,
    ndcg_lme,
    recall_all_at_k,
    recall_any_at_k,
    recall_at_k,
    reciprocal_rank,
)

RANKED = ["a", "b", "c", "d", "e", "f"]

rankings = st.permutations(RANKED)
golds = st.sets(st.sampled_from([*RANKED, "missing", "lost"]), min_size=1)
depths = st.integers(1, 10)


@pytest.mark.parametrize(("k", "expected"), [(1, 0), (2, 1), (5, 1)])
def test_recall_any_is_one_from_the_rank_of_the_first_gold_id(k: int, expected: float) -> None:
    assert recall_any_at_k(RANKED, {"b", "e"}, k) == expected


@pytest.mark.parametrize(("k", "expected"), [(2, 0), (4, 0), (5, 1)])
def test_recall_all_is_one_from_the_rank_of_the_last_gold_id(k: int, expected: float) -> None:
    assert recall_all_at_k(RANKED, {"b", "e"}, k) == expected


def test_recall_all_is_zero_when_one_gold_id_was_never_found() -> None:
    assert recall_all_at_k(RANKED, {"a", "missing"}, 10) == 0


@pytest.mark.parametrize(("k", "expected"), [(1, 0 / 3), (2, 1 / 3), (5, 2 / 3), (10, 2 / 3)])
def test_recall_is_the_share_of_gold_ids_found(k: int, expected: float) -> None:
    assert recall_at_k(RANKED, {"b", "e", "missing"}, k) == expected


def test_gold_ranks_are_those_of_the_gold_ids_that_were_found() -> None:
    assert gold_ranks(RANKED, {"e", "missing", "b"}) == [2, 5]
    assert gold_ranks([(0, 1), (2, 0)], {(2, 0)}) == [2]


@pytest.mark.parametrize(("gold", "expected"), [({"a"}, 1 / 1), ({"c", "f"}, 1 / 3), ({"missing"}, 0)])
def test_reciprocal_rank_counts_the_first_gold_id_only(gold: set[str], expected: float) -> None:
    assert reciprocal_rank(RANKED, gold) == expected


@pytest.mark.parametrize(
    ("gold", "k", "expected"),
    [
        ({"a"}, 10, 1),
        ({"b"}, 10, (1 / log2(3)) / (1 / log2(2))),
        ({"b", "d"}, 10, (1 / log2(3) + 1 / log2(5)) / (1 / log2(2) + 1 / log2(3))),
        ({"b", "d"}, 3, (1 / log2(3)) / (1 / log2(2) + 1 / log2(3))),
        ({"b", "missing"}, 1, 0),
        ({"a", "missing"}, 1, 1 / 1),  # the ideal list of one holds one gold id
    ],
)
def test_ndcg_discounts_by_log2_of_rank_plus_one(gold: set[str], k: int, expected: float) -> None:
    assert ndcg_at_k(RANKED, gold, k) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("gold", "k", "expected"),
    [
        ({"a"}, 10, 1),
        ({"b"}, 10, (1 / log2(2)) / 1),
        ({"c"}, 10, (1 / log2(3)) / 1),
        ({"b", "d"}, 10, (1 / log2(2) + 1 / log2(4)) / (1 + 1 / log2(2))),
        ({"a", "b", "c"}, 2, (1 + 1 / log2(2)) / (1 + 1 / log2(2))),
    ],
)
def test_ndcg_of_the_data_set_leaves_rank_two_undiscounted(gold: set[str], k: int, expected: float) -> None:
    assert ndcg_lme(RANKED, gold, k) == pytest.approx(expected)


@pytest.mark.parametrize("metric", [recall_any_at_k, recall_all_at_k, recall_at_k, ndcg_at_k, ndcg_lme])
def test_an_empty_gold_set_is_refused(metric: object) -> None:
    assert callable(metric)
    with pytest.raises(ValueError, match="no gold id"):
        metric(RANKED, frozenset(), 5)


@given(rankings, golds, depths)
def test_every_metric_lies_within_zero_and_one(ranked: list[str], gold: set[str], k: int) -> None:
    values = [metric(ranked, gold, k) for metric in (recall_any_at_k, recall_all_at_k, recall_at_k, ndcg_at_k, ndcg_lme)]
    assert all(0 <= value <= 1 + 1e-12 for value in [*values, reciprocal_rank(ranked, gold)])


@given(rankings, golds, depths)
def test_finding_all_within_k_is_finding_any_unless_gold_is_larger(ranked: list[str], gold: set[str], k: int) -> None:
    found_all, share, found_any = (metric(ranked, gold, k) for metric in (recall_all_at_k, recall_at_k, recall_any_at_k))
    assert found_all <= share <= found_any <= recall_any_at_k(ranked, gold, k + 1)


@given(st.sets(st.sampled_from(RANKED), min_size=1), depths)
def test_gold_ranked_first_is_ideal_for_both_ndcgs(gold: set[str], k: int) -> None:
    ranked = sorted(RANKED, key=lambda item: item not in gold)
    assert ndcg_at_k(ranked, gold, k) == pytest.approx(1)
    assert ndcg_lme(ranked, gold, k) == pytest.approx(1)


@given(rankings, golds)
def test_names_do_not_matter_to_any_metric(ranked: list[str], gold: set[str]) -> None:
    renamed, renamed_gold = [f"x-{item}" for item in ranked], {f"x-{item}" for item in gold}
    assert ndcg_at_k(ranked, gold, 5) == ndcg_at_k(renamed, renamed_gold, 5)
    assert reciprocal_rank(ranked, gold) == reciprocal_rank(renamed, renamed_gold)
