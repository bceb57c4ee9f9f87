"""The package rank-bm25 as a retriever: the baseline to compare with. Rebuilt whole whenever the user has a new message."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from rank_bm25 import BM25Okapi

from memserver.ranking import best
from memserver.types import Layout, Query, Ranked, Row, View


@dataclass
class RankBM25:
    """``BM25Okapi`` with its own idf and defaults; ``epsilon`` times the mean idf stands for a negative one.

    Term weights other than 1 are left out of account, since the package has none.
    """

    k1: float = 1.5
    b: float = 0.75
    epsilon: float = 0.25
    needs_vectors: ClassVar[bool] = False
    _terms: list[list[str]] = field(init=False, repr=False, default_factory=list)
    _built: dict[View, BM25Okapi] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        if self.k1 < 0 or not 0 <= self.b <= 1 or self.epsilon < 0:
            raise ValueError("k1 and epsilon must be at least 0, b from 0 to 1")

    @property
    def nbytes(self) -> int:
        return sum(8 * len(terms) for terms in self._terms) * (1 + 20 * len(self._built))

    def add(self, rows: Sequence[Row]) -> None:
        self._built.clear()
        self._terms.extend(
            [stem for stem, count in zip(row.stems, row.counts, strict=True) for _ in range(count)] for row in rows
        )

    def search(self, query: Query, view: View, layout: Layout, depth: int) -> Ranked:
        if not any(self._terms):
            return Ranked(np.empty(0, np.int32), np.empty(0))
        if view not in self._built:
            groups: list[list[str]] = [[] for _ in range(view.count(layout))]
            for message, group in zip(*view.memberships(layout, np.arange(len(layout), dtype=np.int32)), strict=True):
                groups[group].extend(self._terms[message])
            self._built[view] = BM25Okapi(groups, k1=self.k1, b=self.b, epsilon=self.epsilon)
        by_message = self._built[view].get_scores(list(query.terms))[view.home(layout)]
        candidates = np.flatnonzero(by_message > 0).astype(np.int32)
        return best(by_message[candidates], candidates, depth)
