"""Weighted reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memserver.ranking import best, dense_ranks
from memserver.types import Layout, Ranked, ScoreArray


@dataclass(frozen=True)
class RRF:
    """A leg's vote for a message is weight / (k + rank); the sum of votes is divided by the most that they could give.

    Only legs that found something count for that maximum. ``k``: how little the first ranks stand out. ``agreement``: what a
    message gains that more than one leg found, beside 1 for the most that votes can give.
    """

    k: float = 60.0
    agreement: float = 0.0

    def __post_init__(self) -> None:
        if self.k < 0 or self.agreement < 0:
            raise ValueError("k and agreement must be at least 0")

    def fuse(self, lists: Sequence[tuple[Ranked, float]], layout: Layout, depth: int) -> Ranked:
        votes = [(ranked, weight / (self.k + dense_ranks(ranked.scores))) for ranked, weight in lists]
        most = sum(weight for ranked, weight in lists if len(ranked)) / (self.k + 1)
        return sum_votes(votes, most, layout, depth, self.agreement)


def sum_votes(
    votes: Sequence[tuple[Ranked, ScoreArray]], most: float, layout: Layout, depth: int, agreement: float = 0.0
) -> Ranked:
    """The messages of all lists by the sum of their votes over ``most``, the highest sum there can be, within [0, 1]."""
    totals = np.zeros(len(layout))
    voters = np.zeros(len(layout), np.int32)
    for ranked, vote in votes:
        totals[ranked.entries] += vote
        voters[ranked.entries] += 1
    candidates = np.flatnonzero(voters).astype(np.int32)
    if most:
        totals = (totals / most + agreement * (voters > 1)) / (1 + agreement)
    return best(totals[candidates], candidates, depth)
