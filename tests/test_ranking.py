"""Order, ties and cuts."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from indexes import by_position, layout, ranked, rows

from memserver.ranking import best, dense_ranks, filled, min_max, ordered


def test_the_best_are_kept_and_so_are_those_tied_with_the_last() -> None:
    found = best(np.array([0.1, 0.5, 0.9, 0.5, 0.2]), np.arange(5, dtype=np.int32), depth=2)
    assert by_position(found) == {2: 0.9, 1: 0.5, 3: 0.5}


def test_equal_scores_share_a_rank_and_the_next_one_follows_without_a_gap() -> None:
    assert dense_ranks(np.array([0.9, 0.5, 0.5, 0.1])).tolist() == [1, 2, 2, 3]
    assert dense_ranks(np.array([])).tolist() == []


def test_min_max_maps_the_worst_to_zero_and_the_best_to_one() -> None:
    assert min_max(np.array([4.0, 3.0, 2.0])).tolist() == [1.0, 0.5, 0.0]
    assert min_max(np.array([2.0, 2.0])).tolist() == [1.0, 1.0]
    assert min_max(np.array([])).tolist() == []


def test_slots_that_would_stay_empty_are_filled_with_the_newest_other_messages() -> None:
    five = layout(rows(*[("s", "text")] * 5))
    assert by_position(filled(ranked({3: 0.7, 1: 0.5}), five, 4)) == {3: 0.7, 1: 0.5, 2: 0.0, 4: 0.0}
    assert filled(ranked({3: 0.7, 1: 0.5}), five, 100).entries.tolist() == [3, 1, 0, 2, 4]
    assert filled(ranked({3: 0.7, 1: 0.5}), five, 1).entries.tolist() == [3, 1]


def test_equal_scores_are_ordered_by_id() -> None:
    stored = rows(("s", "a"), ("s", "b"), ("s", "c"))  # their ids fall
    assert ordered(ranked({0: 0.5, 1: 0.5, 2: 0.7}), layout(stored)).entries.tolist() == [2, 1, 0]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.integers(1, 40))
def test_nothing_that_was_cut_beats_what_was_kept(scores: list[float], depth: int) -> None:
    found = best(np.array(scores), np.arange(len(scores), dtype=np.int32), depth)
    assert len(found) >= min(depth, len(scores))
    assert found.scores.tolist() == sorted(scores, reverse=True)[: len(found)]
