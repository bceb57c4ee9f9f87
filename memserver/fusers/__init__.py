"""Fusers: the ranked lists of several legs -> one list."""

from memserver.fusers.rrf import RRF
from memserver.fusers.rrf_scored import ScoredRRF
from memserver.types import Fuser

FUSERS: dict[str, type[Fuser]] = {"rrf": RRF, "rrf_scored": ScoredRRF}
