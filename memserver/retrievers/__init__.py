"""Retrievers: a query -> a ranked list of one user's messages, through a view.

An instance is one user's index. Its init fields are its tunables; the rest is state that grows with ``add``.
"""

from memserver.retrievers.bm25 import BM25
from memserver.retrievers.bm25_prefix import PrefixBM25
from memserver.retrievers.rank_bm25 import RankBM25
from memserver.retrievers.vectors import Vectors
from memserver.types import Retriever

RETRIEVERS: dict[str, type[Retriever]] = {"bm25": BM25, "bm25_prefix": PrefixBM25, "vectors": Vectors, "rank_bm25": RankBM25}
