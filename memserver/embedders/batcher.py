"""One queue of texts in front of the embedder: concurrent requests share batches, queries go first."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Condition, Event, Lock, Thread

import numpy as np

from memserver.errors import EmbedderError, EmbedderRefused
from memserver.types import Embedder, FloatArray

LOOKAHEAD = 8  # batches sorted by length together: texts of one length waste no padding
NORM_TOLERANCE = 1e-2


@dataclass(eq=False)
class _Request:
    vectors: FloatArray
    missing: int
    done: Event = field(default_factory=Event)
    error: EmbedderError | None = None


@dataclass(frozen=True, slots=True)
class _Item:
    """One text of a request, at ``place`` in it."""

    text: str
    request: _Request
    place: int


@dataclass(frozen=True, slots=True)
class BatcherStats:
    """Of one process since its start. ``batches``: calls of the embedder by their number of texts; ``embedded_bytes``: UTF-8."""

    waiting: int
    batches: Mapping[int, int]
    embedded_bytes: int


class Batcher:
    """``embed`` for many threads. ``embedder.concurrency`` workers draw from one queue, ``queue_limit`` texts long.

    Ordinary texts are served oldest first, in blocks sorted by length. Urgent ones (queries) go before the next batch, but at
    most a block of them between two ordinary batches, so that neither side starves the other.
    """

    def __init__(self, embedder: Embedder, queue_limit: int = 4096) -> None:
        self._embedder = embedder
        self._limit = queue_limit
        self._block = LOOKAHEAD * embedder.batch_size
        self._urgent: deque[_Item] = deque()
        self._ordinary: deque[_Item] = deque()
        self._batches: deque[list[_Item]] = deque()  # the block being worked off
        self._urgent_left = self._block
        self._sizes = Counter[int]()
        self._embedded_bytes = 0
        self._closed = False
        self._door = Lock()  # held by the one request that waits for room: a large one isn't overtaken for ever
        lock = Lock()
        self._lock = lock
        self._work = Condition(lock)
        self._room = Condition(lock)
        self._workers = [Thread(target=self._run, name=f"embedder-{i}", daemon=True) for i in range(embedder.concurrency)]
        for worker in self._workers:
            worker.start()

    @property
    def waiting(self) -> int:
        """How many texts are queued, urgent ones included."""
        with self._lock:
            return len(self._urgent) + self._ordinary_waiting()

    def stats(self) -> BatcherStats:
        """What waits now and what was embedded, at one moment; texts that failed don't count."""
        with self._lock:
            return BatcherStats(len(self._urgent) + self._ordinary_waiting(), dict(self._sizes), self._embedded_bytes)

    def embed(self, texts: Sequence[str], *, urgent: bool = False) -> FloatArray:
        """Unit vectors, (len(texts), dimension). Blocks while the queue is full (never if urgent) and until all are embedded.

        A request larger than the whole queue is let in once that is empty.
        Raises ``EmbedderError`` if a batch with one of the texts fails, or the batcher is closed.
        """
        request = _Request(np.empty((len(texts), self._embedder.dimension), dtype=np.float32), len(texts))
        if not texts:
            return request.vectors
        items = [_Item(text, request, place) for place, text in enumerate(texts)]
        if urgent:
            with self._lock:
                self._enter(items, self._urgent)
        else:
            with self._door, self._lock:
                self._room.wait_for(lambda: self._closed or self._has_room(len(items)))
                self._enter(items, self._ordinary)
        request.done.wait()
        if request.error is not None:
            raise request.error
        return request.vectors

    def close(self) -> None:
        """Fail what is queued, finish the batches under way, stop the workers."""
        with self._lock:
            self._closed = True
            queued = [*self._urgent, *self._ordinary, *(item for batch in self._batches for item in batch)]
            for request in {item.request for item in queued}:
                self._fail(request, "the server is stopping; send the request again")
            self._work.notify_all()
            self._room.notify_all()
        for worker in self._workers:
            worker.join()

    def _ordinary_waiting(self) -> int:
        return len(self._ordinary) + sum(map(len, self._batches))

    def _has_room(self, count: int) -> bool:
        waiting = self._ordinary_waiting()
        return waiting == 0 or waiting + count <= self._limit

    def _enter(self, items: list[_Item], queue: deque[_Item]) -> None:
        if self._closed:
            raise EmbedderError("the server is stopping; send the request again")
        queue.extend(items)
        self._work.notify_all()

    def _run(self) -> None:
        while batch := self._next():
            self._embed(batch)

    def _embed(self, batch: list[_Item]) -> None:
        texts = list(dict.fromkeys(item.text for item in batch))
        try:
            vectors = dict(zip(texts, self._checked(texts), strict=True))
        except Exception as error:
            requests = list(dict.fromkeys(item.request for item in batch))
            if len(requests) > 1 and (isinstance(error, EmbedderRefused) or not isinstance(error, EmbedderError)):
                for request in requests:  # a text that is refused must fail its own request alone
                    self._embed([item for item in batch if item.request is request])
                return
            # Only our own errors are known to carry no content.
            reason = str(error) if isinstance(error, EmbedderError) else f"the embedder failed with {type(error).__name__}"
            with self._lock:
                for request in requests:
                    self._fail(request, reason)
        else:
            size = sum(len(text.encode()) for text in texts)
            with self._lock:
                self._sizes[len(texts)] += 1
                self._embedded_bytes += size
                for item in batch:
                    self._deliver(item, vectors[item.text])

    def _next(self) -> list[_Item]:
        """The next batch, empty at the end."""
        with self._lock:
            self._work.wait_for(lambda: self._closed or self._urgent or self._ordinary or self._batches)
            if self._urgent and (self._urgent_left > 0 or not self._ordinary_waiting()):
                batch = _take(self._urgent, self._embedder.batch_size)
                self._urgent_left -= len(batch)
                return batch
            if self._ordinary and not self._batches:
                block = sorted(_take(self._ordinary, self._block), key=lambda item: len(item.text))
                size = self._embedder.batch_size
                self._batches.extend(block[i : i + size] for i in range(0, len(block), size))
            self._urgent_left = self._block
            self._room.notify_all()
            return self._batches.popleft() if self._batches else []

    def _checked(self, texts: list[str]) -> FloatArray:
        vectors = self._embedder.embed(texts)
        expected = (len(texts), self._embedder.dimension)
        if vectors.shape != expected:
            raise EmbedderRefused(f"the embedder gave an array of shape {vectors.shape} instead of {expected}; check the model")
        norms = np.linalg.norm(vectors, axis=1)
        if vectors.size and not (abs(norms - 1) <= NORM_TOLERANCE).all():  # false for NaN, too
            raise EmbedderRefused("the embedder gave vectors that are not of unit length; check the model")
        return vectors

    def _deliver(self, item: _Item, vector: FloatArray) -> None:
        request = item.request
        request.vectors[item.place] = vector
        request.missing -= 1
        if request.missing == 0:
            request.done.set()

    def _fail(self, request: _Request, reason: str) -> None:
        """Wake the request with an error and drop what is left of it."""
        if request.error is not None:
            return
        request.error = EmbedderError(reason)
        self._urgent = deque(item for item in self._urgent if item.request is not request)
        self._ordinary = deque(item for item in self._ordinary if item.request is not request)
        kept = ([item for item in batch if item.request is not request] for batch in self._batches)
        self._batches = deque(batch for batch in kept if batch)
        request.done.set()
        self._room.notify_all()


def _take(queue: deque[_Item], count: int) -> list[_Item]:
    return [queue.popleft() for _ in range(min(count, len(queue)))]
