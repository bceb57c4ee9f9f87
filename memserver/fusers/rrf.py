"""Weighted reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memserver.ranking import best, dense_ranks
from memserver.types import Layout, Ranked, ScoreArray


@dataclass(frozen=True)
class RRF:
    """A leg's vote for a message is weight / (k + rank); the sum of votes is divided by the most that they could give.

    Only legs that found something count for that maximum. ``k``: how little the first ranks stand out.
    """

    k: float = 60.0

    def fuse(self, lists: Sequence[tuple[Ranked, float]], layout: Layout, depth: int) -> Ranked:
        votes = [(ranked, weight / (self.k + dense_ranks(ranked.scores))) for ranked, weight in lists]
        return sum_votes(votes, sum(weight for ranked, weight in lists if len(ranked)) / (self.k + 1), layout, depth)


def sum_votes(votes: Sequence[tuple[Ranked, ScoreArray]], most: float, layout: Layout, depth: int) -> Ranked:
    """The messages of all lists by the sum of their votes over ``most``, the highest sum there can be."""
    totals = np.zeros(len(layout))
    found = np.zeros(len(layout), bool)
    for ranked, vote in votes:
        totals[ranked.entries] += vote
        found[ranked.entries] = True
    candidates = np.flatnonzero(found).astype(np.int32)
    return best(totals[candidates] / most if most else totals[candidates], candidates, depth)
