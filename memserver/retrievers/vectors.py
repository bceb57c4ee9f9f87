"""Exact vector search: FAISS inner product over unit vectors, which is their cosine."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import faiss
import numpy as np

from memserver.arrays import Growing
from memserver.ranking import best
from memserver.types import FloatArray, Layout, Query, Ranked, Row, ScoreArray, View

LONG = 500  # characters
QUERY_WINDOWS = 64  # of a long query, searched at a time: its lists take some megabytes

faiss.omp_set_num_threads(1)  # requests run in parallel already; a second thread gains nothing on one of them


@dataclass
class Vectors:
    """A message's score is the cosine of its best window with the best window of the query; a group's is its best message's.

    ``long_discount`` is taken off for each doubling of a message's length over 500 characters: among many windows one is near
    anything by chance, and a long message takes the room of several short ones.
    Vectors are held as float16, as they are stored: every one is compared, and half the memory is needed.
    """

    long_discount: float = 0.03
    needs_vectors: ClassVar[bool] = True
    _index: faiss.IndexScalarQuantizer | None = field(init=False, repr=False, default=None)
    _owners: Growing[np.int32] = field(init=False, repr=False, default_factory=lambda: Growing(np.int32))
    _messages: int = field(init=False, repr=False, default=0)

    @property
    def nbytes(self) -> int:
        return self._owners.nbytes + (self._index.ntotal * self._index.code_size if self._index else 0)

    def add(self, rows: Sequence[Row]) -> None:
        windows = [len(row.vectors) for row in rows]
        self._owners.extend(np.repeat(np.arange(self._messages, self._messages + len(rows)), windows))
        self._messages += len(rows)
        if sum(windows):
            vectors = np.concatenate([row.vectors for row in rows if len(row.vectors)])
            if self._index is None:
                self._index = faiss.IndexScalarQuantizer(
                    vectors.shape[1], faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
                )
            self._index.add(vectors)

    def search(self, query: Query, view: View, layout: Layout, depth: int) -> Ranked:
        if self._index is None or not len(query.vectors):
            return Ranked(np.empty(0, np.int32), np.empty(0))
        discounts = self.long_discount * np.log2(np.maximum(1, layout.lengths / LONG))
        by_message = self._best_windows(self._index, query.vectors, discounts, depth)
        hits = np.flatnonzero(by_message > -np.inf).astype(np.int32)
        indexes, groups = view.memberships(layout, hits)
        by_group = np.full(view.count(layout), -np.inf)
        np.maximum.at(by_group, groups, by_message[hits][indexes])
        by_home = by_group[view.home(layout)]
        candidates = np.flatnonzero(by_home > -np.inf).astype(np.int32)
        return best(by_home[candidates], candidates, depth)

    def _best_windows(
        self, index: faiss.IndexScalarQuantizer, queries: FloatArray, discounts: ScoreArray, depth: int
    ) -> ScoreArray:
        """The score of each message, (messages,), right for the ``depth`` best at least; -inf where no window was looked at."""
        windows = 2 * depth
        while True:
            windows = min(windows, index.ntotal)
            by_message, unseen = np.full(self._messages, -np.inf), -np.inf
            for start in range(0, len(queries), QUERY_WINDOWS):
                scores, found = index.search(queries[start : start + QUERY_WINDOWS], windows)
                np.maximum.at(by_message, self._owners.view[found.ravel()], scores.ravel().astype(np.float64))
                unseen = max(unseen, scores[:, -1].max())  # no window that wasn't looked at scores more
            by_message -= discounts
            if windows == index.ntotal or np.count_nonzero(by_message >= unseen) >= depth:
                return by_message
            windows *= 2  # long messages took several places each
