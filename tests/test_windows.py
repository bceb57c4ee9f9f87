"""Windows: balanced, cut at words, overlapping, nothing left out."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memserver.embedders.windows import SEGMENT, balanced, characters, windows
from memserver.types import IntArray


def every(total: int) -> IntArray:
    return np.arange(total, dtype=np.int32)


def test_a_text_that_fits_is_one_span() -> None:
    assert balanced(every(100), 100, capacity=100, overlap=32) == [(0, 100)]


def test_spans_are_of_equal_size_instead_of_one_full_and_one_tiny() -> None:
    size = (110 + 10) // 2  # two spans hold the text and the overlap once more

    assert balanced(every(110), 110, capacity=100, overlap=10) == [(0, size), (size - 10, 110)]


def test_there_are_no_more_spans_than_needed() -> None:
    total, capacity, overlap = 1000, 100, 20

    assert len(balanced(every(total), total, capacity, overlap)) == -(-(total - overlap) // (capacity - overlap))


def test_spans_are_cut_where_a_word_starts() -> None:
    words = np.arange(0, 120, 7, dtype=np.int32)

    spans = balanced(words, 120, capacity=50, overlap=10)

    assert all(start % 7 == 0 for start, _ in spans)
    assert all(end % 7 == 0 or end == 120 for _, end in spans)


def test_a_word_longer_than_a_window_is_cut_with_an_overlap() -> None:
    assert balanced(np.array([0], dtype=np.int32), 150, capacity=100, overlap=10) == [(0, 80), (70, 150)]


@given(
    words=st.sets(st.integers(0, 399)).map(lambda found: np.array(sorted(found), dtype=np.int32)),
    total=st.integers(400, 1000),
    capacity=st.integers(2, 300),
    overlap=st.integers(0, 400),
)
def test_spans_fit_and_move_forward_and_leave_no_gap(words: IntArray, total: int, capacity: int, overlap: int) -> None:
    spans = balanced(words, total, capacity, overlap)

    assert spans[0][0] == 0
    assert spans[-1][1] == total
    assert all(0 < end - start <= capacity for start, end in spans)
    assert all(a[0] < b[0] <= a[1] < b[1] for a, b in pairwise(spans))


def test_characters_are_cut_after_blanks_and_before_han() -> None:
    offsets, words = characters("ab  c医生")

    assert offsets.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert words.tolist() == [0, 4, 5, 6]


@pytest.mark.parametrize("text", ["", " ", "\n" * 2500, "word " * 500, "医" * 2500, "x" * 2500, " x" * 3])
def test_windows_cover_the_text(text: str) -> None:
    found = windows(text, characters, 1000, 100)

    assert [start for start, _ in found][:1] == [0] * bool(text)
    assert [end for _, end in found][-1:] == [len(text)] * bool(text)
    assert all(a[0] < b[0] <= a[1] < b[1] for a, b in pairwise(found))


def test_windows_overlap_across_the_segments_of_a_very_long_text() -> None:
    text = "word " * (SEGMENT // 2)  # 2.5 segments

    found = windows(text, characters, 1000, 100)

    assert (found[0][0], found[-1][1]) == (0, len(text))
    assert all(a[1] - b[0] == 100 for a, b in pairwise(found))


def test_windows_of_a_word_longer_than_a_segment_fit() -> None:
    text = "x" * (2 * SEGMENT + 1)

    assert {end - start <= 1000 for start, end in windows(text, characters, 1000, 100)} == {True}
