"""Who said it: a question that names a person is mostly answered by that person."""

from dataclasses import dataclass

import numpy as np

from memserver.types import Ranked, Scene


@dataclass(frozen=True)
class Speakers:
    """Messages whose label names a speaker that the question names gain ``boost`` times their score.

    BM25 alone can't tell them from the messages in which others address that person. Messages labelled with a role are alike.
    """

    boost: float = 0.6

    def __post_init__(self) -> None:
        if self.boost < 0:
            raise ValueError("boost must be at least 0")

    def rerank(self, ranked: Ranked, scene: Scene) -> Ranked:
        layout = scene.layout
        named = [number for stem in scene.query.terms for number in layout.named.get(stem, ())]
        said = np.isin(layout.speakers[ranked.entries], named)
        if not said.any():
            return ranked
        return Ranked(ranked.entries, ranked.scores * (1 + self.boost * said) / (1 + self.boost))
