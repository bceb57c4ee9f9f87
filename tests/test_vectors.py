"""Exact vector search."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from indexes import by_position, layout, query, row

from memserver.retrievers.vectors import Vectors
from memserver.types import FloatArray, Traits
from memserver.views import VIEWS

EAST, NORTH, NORTHEAST = (1.0, 0.0), (0.0, 1.0), (0.6, 0.8)


def test_a_message_scores_by_its_best_window_and_the_querys_best_window() -> None:
    stored = [row(1, "", vectors=[EAST, NORTH]), row(2, "", vectors=[NORTHEAST]), row(3, "")]
    index = Vectors()
    index.add(stored)
    search = index.search(query(vectors=[EAST]), VIEWS["chunk"](), layout(stored), 10)
    assert by_position(search) == pytest.approx({0: 1.0, 1: 0.6}, abs=1e-3)  # held as float16
    both = index.search(query(vectors=[EAST, NORTHEAST]), VIEWS["chunk"](), layout(stored), 10)
    assert by_position(both) == pytest.approx({0: 1.0, 1: 1.0}, abs=1e-3)


def test_a_session_scores_by_its_best_message() -> None:
    stored = [row(1, "", "a", [NORTH]), row(2, "", "b", [NORTHEAST]), row(3, "", "a", [EAST])]
    index = Vectors()
    index.add(stored)
    found = by_position(index.search(query(vectors=[EAST]), VIEWS["session"](), layout(stored), 10))
    assert found == pytest.approx({0: 1.0, 2: 1.0, 1: 0.6}, abs=1e-3)


def test_the_depth_counts_messages_although_a_long_one_fills_the_first_places() -> None:
    stored = [row(1, "", vectors=[EAST] * 50), row(2, "", vectors=[NORTHEAST]), row(3, "", vectors=[NORTH])]
    index = Vectors()
    index.add(stored)
    assert index.search(query(vectors=[EAST]), VIEWS["chunk"](), layout(stored), 2).entries.tolist() == [0, 1]


@given(
    arrays(np.float32, (24, 4), elements=st.floats(-1, 1, width=32)),
    st.lists(st.integers(0, 5), min_size=24, max_size=24),
    st.integers(1, 3),
    st.integers(1, 6),
)
def test_the_ranking_is_that_of_all_inner_products(vectors: FloatArray, owners: list[int], windows: int, depth: int) -> None:
    held = vectors.astype(np.float16).astype(np.float32)
    queries = held[:windows]
    of_message = [held[[i for i, owner in enumerate(owners) if owner == message]] for message in range(6)]
    stored = [row(seq, "", vectors=mine.tolist()) for seq, mine in enumerate(of_message, 1)]
    index = Vectors()
    for one in stored:
        index.add([one])
    found = index.search(query(vectors=queries.tolist()), VIEWS["chunk"](), layout(stored), depth)
    expected = sorted((float((mine @ queries.T).max()) for mine in of_message if len(mine)), reverse=True)
    assert found.scores.tolist()[:depth] == pytest.approx(expected[:depth], abs=1e-4)


def test_a_long_message_is_held_back_by_each_doubling_over_500_characters() -> None:
    stored = [row(1, "", vectors=[EAST], traits=Traits(2000)), row(2, "", vectors=[EAST], traits=Traits(500))]
    index = Vectors(long_discount=0.1)
    index.add(stored)
    found = by_position(index.search(query(vectors=[EAST]), VIEWS["chunk"](), layout(stored), 10))
    assert found == pytest.approx({1: 1.0, 0: 1.0 - 0.1 * 2}, abs=1e-3)


@given(st.lists(st.tuples(st.floats(-1, 1), st.sampled_from([100, 1000, 8000])), min_size=1, max_size=40), st.integers(1, 5))
def test_the_best_are_found_although_the_first_looked_at_are_held_back(messages: list[tuple[float, int]], depth: int) -> None:
    vectors = [(x, float(np.sqrt(1 - x * x))) for x, _ in messages]
    stored = [
        row(seq, "", vectors=[vector] * 3, traits=Traits(length))
        for seq, (vector, (_, length)) in enumerate(zip(vectors, messages, strict=True), 1)
    ]
    index = Vectors(long_discount=0.2)
    index.add(stored)
    found = index.search(query(vectors=[EAST]), VIEWS["chunk"](), layout(stored), depth)
    expected = sorted((x - 0.2 * np.log2(max(1, length / 500)) for x, length in messages), reverse=True)[:depth]
    assert found.scores[:depth].tolist() == pytest.approx(expected, abs=2e-3)
