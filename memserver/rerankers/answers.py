"""Question and answer: in a talk between people what was asked for stands behind the question."""

from dataclasses import dataclass

import numpy as np

from memserver.types import Ranked, Scene


@dataclass(frozen=True)
class Answers:
    """A named speaker's question loses ``discount`` of its score, and the message behind it gains ``gain`` of it.

    Both in the measure in which the message asks. Messages without a named speaker are left alone: what someone asks an
    assistant tells as much of them as what they state.
    """

    discount: float = 0.2
    gain: float = 0.2

    def __post_init__(self) -> None:
        if not 0 <= self.discount <= 1 or self.gain < 0:
            raise ValueError("discount must be from 0 to 1, gain at least 0")

    def rerank(self, ranked: Ranked, scene: Scene) -> Ranked:
        layout = scene.layout
        asking = np.where(layout.speakers >= 0, layout.asking, 0.0)
        scores = np.zeros(len(layout))
        scores[ranked.entries] = ranked.scores
        before = layout.previous[ranked.entries]
        passed_on = np.where(before >= 0, (scores * asking)[before], 0.0)  # -1 would be the last message
        own = ranked.scores * (1 - self.discount * asking[ranked.entries])
        return Ranked(ranked.entries, (own + self.gain * passed_on) / (1 + self.gain))
