"""Rerankers: other scores for the hits of a list, in the configured order."""

from memserver.rerankers.answers import Answers
from memserver.rerankers.cross_encoder import CrossEncoder
from memserver.rerankers.periods import Periods
from memserver.rerankers.sessions import Sessions
from memserver.rerankers.speakers import Speakers
from memserver.rerankers.updates import Updates
from memserver.types import Reranker

RERANKERS: dict[str, type[Reranker]] = {
    "speakers": Speakers,
    "answers": Answers,
    "periods": Periods,
    "sessions": Sessions,
    "updates": Updates,
    "cross_encoder": CrossEncoder,
}
