"""Per-user indexes in memory: caches that catch up with the store before every search, and that are evicted by bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

import numpy as np

from memserver.arrays import Growing
from memserver.text import day
from memserver.types import DayArray, FloatArray, Head, IdArray, IntArray, Retriever, Row, SeqArray, Store, Traits

_OVERHEAD = 4096  # bytes of Python objects of an empty user, about
UNPLACED = np.iinfo(np.int64).min  # before all timestamps


class UserLayout:
    """How a user's messages lie; see ``types.Layout``.

    Within a session its Adds stand in the order of their first timestamps, then of their arrival: so it does not matter in which
    order they were delivered. An Add without timestamps stands behind the one that arrived before it.
    """

    def __init__(self) -> None:
        self._ids: Growing[np.bytes_] = Growing("S24")
        self._seqs: Growing[np.int64] = Growing(np.int64)
        self._sessions: Growing[np.int32] = Growing(np.int32)
        self._placed: Growing[np.int64] = Growing(np.int64)
        self._days: Growing[np.datetime64] = Growing("datetime64[D]")
        self._lengths: Growing[np.int32] = Growing(np.int32)
        self._asking: Growing[np.float32] = Growing(np.float32)
        self._speakers: Growing[np.int32] = Growing(np.int32)
        self._continued: Growing[np.int32] = Growing(np.int32)
        self._previous: IntArray = np.empty(0, np.int32)
        self._following: IntArray = np.empty(0, np.int32)
        self._continuing: IntArray = np.empty(0, np.int32)
        self._ordinals: dict[str, int] = {}
        self._last: list[int] = []
        self._names: dict[tuple[str, ...], int] = {}
        self._named: dict[str, list[int]] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def ids(self) -> IdArray:
        return self._ids.view

    @property
    def seqs(self) -> SeqArray:
        """The sequence number of each message in the store, (n,), ascending."""
        return self._seqs.view

    @property
    def sessions(self) -> IntArray:
        return self._sessions.view

    @property
    def session_count(self) -> int:
        return len(self._ordinals)

    @property
    def previous(self) -> IntArray:
        return self._previous

    @property
    def following(self) -> IntArray:
        return self._following

    @property
    def days(self) -> DayArray:
        return self._days.view

    @property
    def lengths(self) -> IntArray:
        return self._lengths.view

    @property
    def asking(self) -> FloatArray:
        return self._asking.view

    @property
    def speakers(self) -> IntArray:
        return self._speakers.view

    @property
    def named(self) -> Mapping[str, Sequence[int]]:
        return self._named

    @property
    def continued(self) -> IntArray:
        return self._continued.view

    @property
    def continuing(self) -> IntArray:
        return self._continuing

    @property
    def nbytes(self) -> int:
        growing = (self._ids, self._seqs, self._sessions, self._placed, self._days, self._lengths, self._asking, self._speakers)
        arrays = (*growing, self._continued, self._previous, self._following, self._continuing)
        names = sum(200 + 4 * len(session) for session in self._ordinals) + 400 * len(self._names)
        return sum(array.nbytes for array in arrays) + names

    def add(self, rows: Sequence[Row]) -> None:
        if not rows:
            return
        start = len(self)
        traits = [row.traits for row in rows]
        self._ids.extend([row.id.encode("ascii") for row in rows])
        self._seqs.extend([row.seq for row in rows])
        self._days.extend([_day(row.timestamp) for row in rows])
        self._lengths.extend([seen.length for seen in traits])
        self._asking.extend([seen.asking for seen in traits])
        self._speakers.extend([self._speaker(seen.speaker) for seen in traits])
        self._sessions.extend([self._ordinals.setdefault(row.session_id, len(self._ordinals)) for row in rows])
        self._place(traits, start)
        self._continued.extend([self._position(seen.continues, start + i) for i, seen in enumerate(traits)])
        self._link()

    def _speaker(self, stems: tuple[str, ...]) -> int:
        if not stems:
            return -1
        number = self._names.get(stems)
        if number is None:
            number = self._names[stems] = len(self._names)
            for stem in stems:
                self._named.setdefault(stem, []).append(number)
        return number

    def _place(self, traits: Sequence[Traits], start: int) -> None:
        """Where each message stands in its session: the timestamp of its Add, or that of the message that arrived before it."""
        self._last += [UNPLACED] * (len(self._ordinals) - len(self._last))
        placed = []
        for session, seen in zip(self.sessions[start:].tolist(), traits, strict=True):
            if seen.placed is not None:
                self._last[session] = seen.placed
            placed.append(self._last[session])
        self._placed.extend(placed)

    def _position(self, id_: str | None, at: int) -> int:
        """The position of the message with this id, -1 if it is gone; nearly always the one before ``at``."""
        if id_ is None:
            return -1
        key = id_.encode("ascii")
        if at and self.ids[at - 1] == key:
            return at - 1
        found = np.flatnonzero(self.ids[:at] == key)
        return int(found[-1]) if len(found) else -1

    def _link(self) -> None:
        """Neighbours anew: an Add may have come between others."""
        order = np.lexsort((self._placed.view, self.sessions)).astype(np.int32)  # stable: ties stay in the order of arrival
        together = self.sessions[order[1:]] == self.sessions[order[:-1]]
        self._previous = np.full(len(self), -1, np.int32)
        self._following = np.full(len(self), -1, np.int32)
        self._previous[order[1:][together]] = order[:-1][together]
        self._following[order[:-1][together]] = order[1:][together]
        rest = np.flatnonzero(self.continued >= 0)
        self._continuing = np.full(len(self), -1, np.int32)
        self._continuing[self.continued[rest]] = rest


def _day(timestamp: int | None) -> np.datetime64:
    found = day(timestamp)
    return np.datetime64(found, "D") if found else np.datetime64("NaT", "D")


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


@dataclass(frozen=True, slots=True)
class IndexStats:
    """Of one process: what is in memory now (``nbytes`` estimated), and how often since the start an index was there or not."""

    users: int
    nbytes: int
    hits: int
    misses: int
    evictions: int


class UserIndexes:
    """The indexes of the users searched last, at most ``limit`` bytes of them, but always the last one."""

    def __init__(self, store: Store, build: Callable[[], Mapping[str, Retriever]], limit: int) -> None:
        self._store = store
        self._build = build
        self._limit = limit
        self._slots: OrderedDict[str, _Slot] = OrderedDict()
        self._lock = Lock()
        self._nbytes = 0
        self._hits = self._misses = self._evictions = 0

    @property
    def nbytes(self) -> int:
        """Bytes held by all indexes, estimated."""
        return self._nbytes

    def __len__(self) -> int:
        return len(self._slots)

    def stats(self) -> IndexStats:
        """The figures of one moment."""
        with self._lock:
            return IndexStats(len(self._slots), self._nbytes, self._hits, self._misses, self._evictions)

    @contextmanager
    def current(self, user_id: str) -> Iterator[UserIndex]:
        """The user's index, brought up to the store's head; held for this thread alone until the block ends."""
        with self._lock:
            if user_id in self._slots:
                self._hits += 1
            else:
                self._misses += 1
            slot = self._slots.setdefault(user_id, _Slot())
            self._slots.move_to_end(user_id)
        with slot.lock:
            index = self._caught_up(user_id, slot)
            try:
                yield index
            finally:
                self._account(user_id, slot, index.nbytes if index.head else 0)

    def drop(self, user_id: str) -> None:
        """Forget a user's index; a search that has it goes on with it."""
        with self._lock:
            slot = self._slots.pop(user_id, None)
            self._nbytes -= slot.nbytes if slot else 0

    def sweep(self) -> None:
        """Drop the indexes of users that were deleted or purged, here or by another process, and not searched since."""
        with self._lock:
            heads = {user_id: slot.index.head for user_id, slot in self._slots.items() if slot.index}
        for user_id, seen in heads.items():
            now = self._store.head(user_id)
            if now is None or (seen and seen.epoch != now.epoch):
                self.drop(user_id)

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
                self._evictions += 1
