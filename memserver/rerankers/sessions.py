"""Soft diversification over sessions."""

from dataclasses import dataclass

import numpy as np

from memserver.types import IntArray, Ranked, Scene


@dataclass(frozen=True)
class Sessions:
    """A hit's score is divided by 1 + ``discount`` times the number of better hits of its session.

    At equal relevance other sessions come first, and no session is capped: a hard cap of three pushed a tenth of the evidence
    of long conversations out of the first places.
    """

    discount: float = 0.01

    def __post_init__(self) -> None:
        if self.discount < 0:
            raise ValueError("discount must be at least 0")

    def rerank(self, ranked: Ranked, scene: Scene) -> Ranked:
        places = _places(scene.layout.sessions[ranked.entries])
        return Ranked(ranked.entries, ranked.scores / (1 + self.discount * places))


def _places(groups: IntArray) -> IntArray:
    """For each position, how many earlier positions hold the same group."""
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    places = np.empty(len(groups), np.int32)
    places[order] = np.arange(len(groups)) - np.repeat(starts, np.diff(starts, append=len(groups)))
    return places
