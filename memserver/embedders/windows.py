"""Cutting a text into balanced, overlapping windows that fit a model, whatever the model counts in (tokens, characters)."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from memserver.types import IntArray

Measure = Callable[[str], tuple[IntArray, IntArray]]
"""Text -> the character at which each of its units starts, (units,), and the units at which a word starts, (words,)."""

SEGMENT = 100_000  # characters measured at a time: a text of 42 MB must not become one list of tokens

WORD_START = re.compile(r"(?<!\S)\S|[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")  # kana and Han stand without spaces


def windows(text: str, measure: Measure, capacity: int, overlap: int) -> list[tuple[int, int]]:
    """Windows ``[start, end)`` of at most ``capacity`` units, in characters: sorted, overlapping, covering all of ``text``.

    They start where a word starts, except within a word of more than ``capacity`` units. An empty text has no window.
    """
    found: list[tuple[int, int]] = []
    position = 0
    while position < len(text):
        segment = text[position : position + SEGMENT]
        offsets, words = measure(segment)
        edges = [0, *offsets[1:].tolist(), len(segment)]  # blanks before the first unit belong to the first window
        spans = balanced(words, len(edges) - 1, capacity, overlap)
        spans = [(position + edges[first], position + edges[last]) for first, last in spans]
        position += len(segment)
        if position < len(text) and len(spans) > 1:
            position = spans.pop()[0]  # the segment may end within a word: its last window is measured again
        found += spans
    return found


def balanced(words: IntArray, total: int, capacity: int, overlap: int) -> list[tuple[int, int]]:
    """Spans of about equal size that cover ``[0, total)``, each at most ``capacity`` long and, if it can, cut at ``words``.

    ``words`` ascend within ``[0, total)``. As many spans as are needed, n = ceil((total - overlap) / (capacity - overlap)),
    so that no text ends in a sliver whose vector would say nothing.
    """
    overlap = min(overlap, capacity // 2)
    cuts = np.append(words[words > 0], total)
    spans: list[tuple[int, int]] = []
    start = 0
    while True:
        rest = total - start
        count = max(1, -(-(rest - overlap) // (capacity - overlap)))
        ideal = start - (-(rest + (count - 1) * overlap) // count)
        end = _cut(cuts, start + overlap, ideal, min(start + capacity, total))
        spans.append((start, end))
        if end == total:
            return spans
        again = max(start + 1, end - overlap)
        following = int(cuts[np.searchsorted(cuts, again)])
        start = following if following <= end else again


def _cut(cuts: IntArray, low: int, ideal: int, high: int) -> int:
    """The first cut from ``ideal`` up to ``high``, else the last one before it but after ``low``, else ``ideal`` itself."""
    place = int(np.searchsorted(cuts, ideal))
    if cuts[place] <= high:
        return int(cuts[place])
    if place and cuts[place - 1] > low:
        return int(cuts[place - 1])
    return min(ideal, high)


def characters(text: str) -> tuple[IntArray, IntArray]:
    """Measure a text in characters."""
    words = np.fromiter((match.start() for match in WORD_START.finditer(text)), dtype=np.int32)
    return np.arange(len(text), dtype=np.int32), words
