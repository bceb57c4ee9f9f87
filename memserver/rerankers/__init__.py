"""Rerankers: a list -> the same hits in a better order. Applied in the configured order."""

from memserver.rerankers.sessions import Sessions
from memserver.types import Reranker

RERANKERS: dict[str, type[Reranker]] = {"sessions": Sessions}
