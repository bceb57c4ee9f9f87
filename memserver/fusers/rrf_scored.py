"""Weighted RRF whose votes also carry how good the candidate is within its leg."""

from collections.abc import Sequence
from dataclasses import dataclass

from memserver.fusers.rrf import sum_votes
from memserver.ranking import dense_ranks, min_max
from memserver.types import Layout, Ranked


@dataclass(frozen=True)
class ScoredRRF:
    """A leg's vote is weight / (k + rank) times the candidate's score in that leg, mapped to [0, 1] over the leg's list.

    Ranks alone forget that a leg's first hit may be far ahead of its second. ``k``: how little the first ranks stand out; the
    scores tell most of that already, so it is higher than RRF's usual 60.
    """

    k: float = 200.0

    def __post_init__(self) -> None:
        if self.k < 0:
            raise ValueError("k must be at least 0")

    def fuse(self, lists: Sequence[tuple[Ranked, float]], layout: Layout, depth: int) -> Ranked:
        votes = [(ranked, weight * min_max(ranked.scores) / (self.k + dense_ranks(ranked.scores))) for ranked, weight in lists]
        return sum_votes(votes, sum(weight for ranked, weight in lists if len(ranked)) / (self.k + 1), layout, depth)
