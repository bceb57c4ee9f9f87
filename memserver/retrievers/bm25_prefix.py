"""BM25 that also matches prefixes and synonyms, as agentmemory does: there to rebuild its published results."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from memserver.retrievers.bm25 import BM25
from memserver.types import Layout, Query, Ranked, Row, View

SYNONYMS = (("db", "databas", "datastor"), ("perf", "perform", "latenc", "throughput"))
"""Stems of the two groups that its documentation names; it has 43, mostly of software terms."""


@dataclass
class PrefixBM25:
    """``k1`` and ``b`` as in BM25. ``prefix``: weight of a term that the query term begins; ``synonym``: of one of its group."""

    k1: float = 1.2
    b: float = 0.75
    prefix: float = 0.5
    synonym: float = 0.7
    needs_vectors: ClassVar[bool] = False
    _bm25: BM25 = field(init=False, repr=False)
    _sorted: list[str] = field(init=False, repr=False, default_factory=list)

    def __post_init__(self) -> None:
        if self.prefix < 0 or self.synonym < 0:
            raise ValueError("prefix and synonym must be at least 0")
        self._bm25 = BM25(self.k1, self.b)

    @property
    def nbytes(self) -> int:
        return self._bm25.nbytes + 8 * len(self._sorted)

    def add(self, rows: Sequence[Row]) -> None:
        self._bm25.add(rows)

    def search(self, query: Query, view: View, layout: Layout, depth: int) -> Ranked:
        return self._bm25.search(Query(self._expanded(query.terms), query.vectors), view, layout, depth)

    def _expanded(self, terms: Mapping[str, float]) -> Mapping[str, float]:
        if len(self._sorted) < len(self._bm25.postings.terms):
            self._sorted = sorted(self._bm25.postings.terms)
        expanded: defaultdict[str, float] = defaultdict(float)
        for term, weight in terms.items():
            synonyms = {other for group in SYNONYMS if term in group for other in group if other != term}
            for known, share in ((term, 1.0), *((other, self.synonym) for other in synonyms)):
                expanded[known] += weight * share
                for longer in self._longer(known):
                    expanded[longer] += weight * share * self.prefix
        return expanded

    def _longer(self, term: str) -> list[str]:
        """The indexed terms that ``term`` is a proper prefix of."""
        start = bisect_right(self._sorted, term)
        return self._sorted[start : bisect_right(self._sorted, term + chr(0x10FFFF), lo=start)]
