"""Feature hashing: vectors without a model, for tests and demos."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from memserver.embedders.windows import characters, windows
from memserver.types import FloatArray

WINDOW = 1000  # characters; about what 256 word pieces hold
OVERLAP = 100  # characters


@dataclass(frozen=True)
class Hashing:
    """A text's words and their character trigrams, hashed into signs at fixed places (Weinberger et al. 2009, arXiv:0902.2206).

    The vector depends on the text alone, on every machine; texts that share words, or parts of words, have similar vectors.

    dimension: length of a vector, default 256.
    """

    dimension: int = 256

    def __post_init__(self) -> None:
        if not 1 <= self.dimension <= 65_536:
            raise ValueError("dimension must be from 1 to 65,536")

    @property
    def batch_size(self) -> int:
        return 64

    @property
    def concurrency(self) -> int:
        return 1

    @property
    def model(self) -> str:
        return "hashing"

    @property
    def fingerprint(self) -> str:
        """Changes with the dimension; the 1 is to be raised with any change of ``features``."""
        return f"hashing-1-{self.dimension}"

    def load(self) -> None:
        """Nothing to do."""

    def coverage(self, text: str) -> float:
        """All scripts alike."""
        return 1.0

    def windows(self, text: str, prefix: str) -> list[tuple[int, int]]:
        """Windows of at most 1,000 characters; the prefix takes no room, as nothing is ever cut off here."""
        return windows(text, characters, WINDOW, OVERLAP)

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """Unit vectors, (len(texts), dimension)."""
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for text, vector in zip(texts, vectors, strict=True):
            for feature in features(text):
                self._vote(vector, feature)
            if not vector.any():  # no word at all, or all votes cancelled out
                self._vote(vector, text)
            vector /= np.linalg.norm(vector)
        return vectors

    def _vote(self, vector: FloatArray, feature: str) -> None:
        hashed = crc32(feature.encode())
        vector[(hashed >> 1) % self.dimension] += 1 if hashed & 1 else -1


def features(text: str) -> Iterator[str]:
    """The distinct lower-case words of a text and the trigrams of each with its ends marked, in order of appearance."""
    for word in dict.fromkeys(re.findall(r"\w+", text.lower())):
        yield word
        marked = f"<{word}>"
        yield from (marked[i : i + 3] for i in range(len(marked) - 2))
