"""View ``context``: a message with the one before and the one after it in its session."""

from dataclasses import dataclass

import numpy as np

from memserver.types import IntArray, Layout


@dataclass(frozen=True)
class ContextView:
    """Group i is message i with its two neighbours; a message thus belongs to up to three groups."""

    def count(self, layout: Layout) -> int:
        return len(layout)

    def memberships(self, layout: Layout, messages: IntArray) -> tuple[IntArray, IntArray]:
        indexes = np.arange(len(messages), dtype=np.int32)
        groups = np.concatenate([messages, layout.previous[messages], layout.following[messages]])
        present = groups >= 0
        return np.tile(indexes, 3)[present], groups[present]

    def home(self, layout: Layout) -> IntArray:
        return np.arange(len(layout), dtype=np.int32)
