"""Per-user indexes in memory: caches that catch up with the store before every search, and that are evicted by bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

import numpy as np

from memserver.arrays import Growing
from memserver.types import Head, IdArray, IntArray, Retriever, Row, Store

_OVERHEAD = 4096  # bytes of Python objects of an empty user, about


class UserLayout:
    """How a user's messages lie; see ``types.Layout``."""

    def __init__(self) -> None:
        self._ids: Growing[np.bytes_] = Growing("S24")
        self._sessions: Growing[np.int32] = Growing(np.int32)
        self._previous: Growing[np.int32] = Growing(np.int32)
        self._following: Growing[np.int32] = Growing(np.int32)
        self._ordinals: dict[str, int] = {}
        self._last: list[int] = []

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def ids(self) -> IdArray:
        return self._ids.view

    @property
    def sessions(self) -> IntArray:
        return self._sessions.view

    @property
    def session_count(self) -> int:
        return len(self._ordinals)

    @property
    def previous(self) -> IntArray:
        return self._previous.view

    @property
    def following(self) -> IntArray:
        return self._following.view

    @property
    def nbytes(self) -> int:
        arrays = (self._ids, self._sessions, self._previous, self._following)
        return sum(array.nbytes for array in arrays) + sum(200 + 4 * len(session) for session in self._ordinals)

    def add(self, rows: Sequence[Row]) -> None:
        start = len(self)
        self._ids.extend([row.id.encode("ascii") for row in rows])
        self._following.extend(np.full(len(rows), -1, np.int32))
        sessions, previous = [], []
        for position, row in enumerate(rows, start):
            ordinal = self._ordinals.setdefault(row.session_id, len(self._ordinals))
            if ordinal == len(self._last):
                self._last.append(-1)
            before = self._last[ordinal]
            if before >= 0:
                self.following[before] = position
            self._last[ordinal] = position
            sessions.append(ordinal)
            previous.append(before)
        self._sessions.extend(sessions)
        self._previous.extend(previous)


@dataclass
class UserIndex:
    """A user's layout and retrievers, as of ``head``."""

    retrievers: Mapping[str, Retriever]
    head: Head | None = None
    layout: UserLayout = field(default_factory=UserLayout)

    @property
    def nbytes(self) -> int:
        return _OVERHEAD + self.layout.nbytes + sum(retriever.nbytes for retriever in self.retrievers.values())

    def add(self, rows: Sequence[Row]) -> None:
        self.layout.add(rows)
        for retriever in self.retrievers.values():
            retriever.add(rows)


class _Slot:
    """The place of a user's index; the lock lets one thread at a time build or search it."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.index: UserIndex | None = None
        self.nbytes = 0


class UserIndexes:
    """The indexes of the users searched last, at most ``limit`` bytes of them, but always the last one."""

    def __init__(self, store: Store, build: Callable[[], Mapping[str, Retriever]], limit: int) -> None:
        self._store = store
        self._build = build
        self._limit = limit
        self._slots: OrderedDict[str, _Slot] = OrderedDict()
        self._lock = Lock()
        self._nbytes = 0

    @property
    def nbytes(self) -> int:
        """Bytes held by all indexes, estimated."""
        return self._nbytes

    def __len__(self) -> int:
        return len(self._slots)

    @contextmanager
    def current(self, user_id: str) -> Iterator[UserIndex]:
        """The user's index, brought up to the store's head; held for this thread alone until the block ends."""
        with self._lock:
            slot = self._slots.setdefault(user_id, _Slot())
            self._slots.move_to_end(user_id)
        with slot.lock:
            index = self._caught_up(user_id, slot)
            try:
                yield index
            finally:
                self._account(user_id, slot, index.nbytes if index.head else 0)

    def _caught_up(self, user_id: str, slot: _Slot) -> UserIndex:
        index = slot.index or UserIndex(self._build())
        head, rows = self._store.read_since(user_id, index.head)
        if index.head and (head is None or head.epoch != index.head.epoch):
            index = UserIndex(self._build())
        slot.index = None  # an index that fails half-way through the rows must not be used again
        index.add(rows)
        index.head = head
        slot.index = index
        return index

    def _account(self, user_id: str, slot: _Slot, nbytes: int) -> None:
        with self._lock:
            if self._slots.get(user_id) is not slot:
                return
            self._nbytes += nbytes - slot.nbytes
            slot.nbytes = nbytes
            if not nbytes:
                del self._slots[user_id]
            while self._nbytes > self._limit and len(self._slots) > 1:
                _, oldest = self._slots.popitem(last=False)
                self._nbytes -= oldest.nbytes
