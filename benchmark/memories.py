"""Memories around a memory: one that times its answers, one that can be told to give no more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Event
from time import perf_counter

from benchmark.client import Memory
from benchmark.errors import BenchError
from memserver.types import Hit


class Timed:
    """A memory whose Adds and Searches are timed, in milliseconds; ``answered`` is called after each of them. Thread-safe."""

    def __init__(self, memory: Memory, answered: Callable[[], None]) -> None:
        self._memory = memory
        self._answered = answered
        self.add_ms: list[float] = []
        self.search_ms: list[float] = []

    def add(self, body: bytes) -> None:
        with self._timed(self.add_ms):
            self._memory.add(body)

    def search(self, body: bytes) -> list[Hit]:
        with self._timed(self.search_ms):
            return self._memory.search(body)

    def describe(self) -> Mapping[str, object]:
        return self._memory.describe()

    @contextmanager
    def _timed(self, times: list[float]) -> Iterator[None]:
        started = perf_counter()
        yield
        times.append(1000 * (perf_counter() - started))
        self._answered()


class Stoppable:
    """A memory that raises ``BenchError`` instead of an answer once ``stop`` was called. Thread-safe."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._stopped = Event()

    def stop(self) -> None:
        self._stopped.set()

    def add(self, body: bytes) -> None:
        self._check()
        self._memory.add(body)

    def search(self, body: bytes) -> list[Hit]:
        self._check()
        return self._memory.search(body)

    def describe(self) -> Mapping[str, object]:
        return self._memory.describe()

    def _check(self) -> None:
        if self._stopped.is_set():
            raise BenchError("stopped, because another part of the run failed or was interrupted")
