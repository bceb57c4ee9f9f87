"""View ``chunk``: every message by itself (vectors: the best of its windows)."""

from dataclasses import dataclass

import numpy as np

from memserver.types import IntArray, Layout


@dataclass(frozen=True)
class ChunkView:
    """Group i is message i."""

    def count(self, layout: Layout) -> int:
        return len(layout)

    def memberships(self, layout: Layout, messages: IntArray) -> tuple[IntArray, IntArray]:
        return np.arange(len(messages), dtype=np.int32), messages

    def home(self, layout: Layout) -> IntArray:
        return np.arange(len(layout), dtype=np.int32)
