"""When it was said: a question that names a date, a month or a year is mostly answered by messages of then."""

from dataclasses import dataclass

import numpy as np

from memserver.types import Ranked, Scene


@dataclass(frozen=True)
class Periods:
    """Messages of the days that the question speaks of gain ``boost`` times their score, those up to ``grace`` days later half.

    People tell of an event on its day or in the days behind it. Messages without a timestamp gain nothing.
    """

    boost: float = 0.3
    grace: int = 7

    def __post_init__(self) -> None:
        if self.boost < 0 or self.grace < 0:
            raise ValueError("boost and grace must be at least 0")

    def rerank(self, ranked: Ranked, scene: Scene) -> Ranked:
        periods = scene.query.periods
        if not periods:
            return ranked
        days = scene.layout.days[ranked.entries]
        inside, near = (np.any([period.contains(days, grace) for period in periods], axis=0) for grace in (0, self.grace))
        return Ranked(ranked.entries, ranked.scores * (1 + self.boost * (inside + 0.5 * (near & ~inside))) / (1 + self.boost))
