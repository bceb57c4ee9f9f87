"""Soft diversification over sessions."""

from dataclasses import dataclass

import numpy as np

from memserver.types import IntArray, Layout, Ranked


@dataclass(frozen=True)
class Sessions:
    """At most ``per_session`` hits of a session come first, then all others, both in the order they had. 0: leave the order.

    Nothing is dropped, so the slots stay filled. One is taken off the scores of those put off, which brings them below the
    others (scores lie within [0, 1]): the order by score and the order of the list stay the same.
    """

    per_session: int = 3

    def __post_init__(self) -> None:
        if self.per_session < 0:
            raise ValueError("per_session must be at least 0")

    def rerank(self, ranked: Ranked, layout: Layout) -> Ranked:
        if self.per_session == 0 or not len(ranked):
            return ranked
        first = _places(layout.sessions[ranked.entries]) < self.per_session
        return Ranked(
            np.concatenate([ranked.entries[first], ranked.entries[~first]]),
            np.concatenate([ranked.scores[first], ranked.scores[~first] - 1]),
        )


def _places(groups: IntArray) -> IntArray:
    """For each position, how many earlier positions hold the same group."""
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    places = np.empty(len(groups), np.int32)
    places[order] = np.arange(len(groups)) - np.repeat(starts, np.diff(starts, append=len(groups)))
    return places
