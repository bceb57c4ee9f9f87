"""No embedder: for servers that search by words alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memserver.types import FloatArray


@dataclass(frozen=True)
class NoEmbedder:
    """Vectors of dimension 0 and no windows, so nothing is ever embedded. No tunables."""

    @property
    def batch_size(self) -> int:
        return 1

    @property
    def concurrency(self) -> int:
        return 1

    @property
    def model(self) -> str:
        return "none"

    @property
    def dimension(self) -> int:
        return 0

    @property
    def fingerprint(self) -> str:
        return "none"

    def load(self) -> None:
        """Nothing to do."""

    def coverage(self, text: str) -> float:
        """All scripts alike."""
        return 1.0

    def windows(self, text: str, prefix: str) -> list[tuple[int, int]]:
        """No window, whatever the text."""
        return []

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """(len(texts), 0)."""
        return np.zeros((len(texts), 0), dtype=np.float32)
