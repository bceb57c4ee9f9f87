"""BM25 that grows by appends and ranks any view from one set of message postings.

Score of a group: sum over query terms of weight * idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / mean length)),
idf = log(1 + (N - df + .5) / (df + .5)) (Robertson and Zaragoza 2009, with Lucene's idf, which is never negative).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from memserver.arrays import Growing
from memserver.ranking import best
from memserver.types import IntArray, Layout, Query, Ranked, Row, ScoreArray, View


@dataclass
class BM25:
    """``k1``: how slowly repeated terms saturate. ``b``: how much long groups are held back, 0 to 1."""

    k1: float = 1.2
    b: float = 0.75
    needs_vectors: ClassVar[bool] = False
    postings: "Postings" = field(init=False, repr=False, default_factory=lambda: Postings())
    _norms: dict[View, tuple[int, ScoreArray]] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        if self.k1 < 0 or not 0 <= self.b <= 1:
            raise ValueError("k1 must be at least 0, b from 0 to 1")

    @property
    def nbytes(self) -> int:
        return self.postings.nbytes + sum(norm.nbytes for _, norm in self._norms.values())

    def add(self, rows: Sequence[Row]) -> None:
        self.postings.add(rows)

    def search(self, query: Query, view: View, layout: Layout, depth: int) -> Ranked:
        count = view.count(layout)
        norms = self._length_norms(view, layout)
        scores = np.zeros(count)
        for term, weight in query.terms.items():
            messages, frequencies = self.postings.of(term)
            if not len(messages):
                continue
            indexes, groups = view.memberships(layout, messages)
            sums = np.bincount(groups, frequencies[indexes], count)
            found = np.flatnonzero(sums)
            sums = sums[found]
            idf = np.log(1 + (count - len(found) + 0.5) / (len(found) + 0.5))
            scores[found] += weight * idf * sums * (self.k1 + 1) / (sums + norms[found])
        by_message = scores[view.home(layout)]
        candidates = np.flatnonzero(by_message > 0)
        return best(by_message[candidates], candidates.astype(np.int32), depth)

    def _length_norms(self, view: View, layout: Layout) -> ScoreArray:
        """k1 * (1 - b + b * length / mean length) of each group; kept until the next message comes."""
        known = self._norms.get(view)
        if known is None or known[0] != len(layout):
            indexes, groups = view.memberships(layout, np.arange(len(layout), dtype=np.int32))
            lengths = np.bincount(groups, self.postings.lengths[indexes], view.count(layout))
            mean = lengths.mean() or 1.0 if len(lengths) else 1.0
            known = len(layout), self.k1 * (1 - self.b + self.b * lengths / mean)
            self._norms[view] = known
        return known[1]


class Postings:
    """Which messages have which term how often: a part sorted by term, and a small tail of what came since.

    The tail is merged into the sorted part when it has grown by a fixed share, so an append costs amortised constant time.
    """

    _TAIL = 1 << 16  # postings; scanning as many takes some ten microseconds a term

    def __init__(self) -> None:
        self._terms: dict[str, int] = {}
        self._starts = np.zeros(1, np.int64)
        self._messages: IntArray = np.empty(0, np.int32)
        self._counts = np.empty(0, np.uint16)
        self._tail_terms: Growing[np.int32] = Growing(np.int32)
        self._tail_messages: Growing[np.int32] = Growing(np.int32)
        self._tail_counts: Growing[np.uint16] = Growing(np.uint16)
        self._lengths: Growing[np.int32] = Growing(np.int32)
        self._term_bytes = 0

    @property
    def lengths(self) -> IntArray:
        """Terms in each message, (messages,)."""
        return self._lengths.view

    @property
    def nbytes(self) -> int:
        tail = self._tail_terms.nbytes + self._tail_messages.nbytes + self._tail_counts.nbytes
        return self._starts.nbytes + self._messages.nbytes + self._counts.nbytes + tail + self._lengths.nbytes + self._term_bytes

    @property
    def terms(self) -> Collection[str]:
        """All terms of all messages."""
        return self._terms.keys()

    def add(self, rows: Sequence[Row]) -> None:
        known, number = len(self._terms), self._terms.setdefault
        self._tail_terms.extend([number(stem, len(self._terms)) for row in rows for stem in row.stems])
        sizes = [len(row.stems) for row in rows]
        self._tail_messages.extend(np.repeat(np.arange(len(self._lengths), len(self._lengths) + len(rows)), sizes))
        self._tail_counts.extend(np.concatenate([row.counts for row in rows]) if rows else [])
        self._lengths.extend([int(row.counts.sum()) for row in rows])
        self._term_bytes += 120 * (len(self._terms) - known)  # a dict slot, the string and its number
        if len(self._tail_terms) > self._TAIL + len(self._messages) // 16:
            self._merge()

    def of(self, term: str) -> tuple[IntArray, IntArray]:
        """The messages that have ``term``, ascending, and how often, both (df,)."""
        number = self._terms.get(term)
        if number is None:
            return np.empty(0, np.int32), np.empty(0, np.int32)
        in_tail = np.flatnonzero(self._tail_terms.view == number)
        start, end = (self._starts[number], self._starts[number + 1]) if number + 1 < len(self._starts) else (0, 0)
        return (
            np.concatenate([self._messages[start:end], self._tail_messages.view[in_tail]]),
            np.concatenate([self._counts[start:end], self._tail_counts.view[in_tail]]).astype(np.int32),
        )

    def _merge(self) -> None:
        sorted_terms = np.repeat(np.arange(len(self._starts) - 1, dtype=np.int32), np.diff(self._starts))
        terms = np.concatenate([sorted_terms, self._tail_terms.view])
        order = np.argsort(terms, kind="stable")  # stable: messages stay ascending within a term
        self._messages = np.concatenate([self._messages, self._tail_messages.view])[order]
        self._counts = np.concatenate([self._counts, self._tail_counts.view])[order]
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(terms, minlength=len(self._terms)))])
        for tail in (self._tail_terms, self._tail_messages, self._tail_counts):
            tail.clear()
