"""A growable numpy array. Imports nothing of ours."""

from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T", bound=np.generic)


class Growing(Generic[T]):
    """A one-dimensional array that takes appends in amortised constant time."""

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._buffer: npt.NDArray[T] = np.empty(16, dtype)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def view(self) -> npt.NDArray[T]:
        """The filled part, (len,), without a copy; stays valid only until the next ``extend``."""
        return self._buffer[: self._length]

    @property
    def nbytes(self) -> int:
        return self._buffer.nbytes

    def extend(self, values: npt.ArrayLike) -> None:
        new = np.asarray(values, self._buffer.dtype)
        needed = self._length + len(new)
        if needed > len(self._buffer):
            grown = np.empty(max(needed, 2 * len(self._buffer)), self._buffer.dtype)
            grown[: self._length] = self.view
            self._buffer = grown
        self._buffer[self._length : needed] = new
        self._length = needed

    def clear(self) -> None:
        self._length = 0
