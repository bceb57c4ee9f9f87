"""The whole flow of Add and Search, and the only place where the stages meet."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import BoundedSemaphore, Lock

import numpy as np

from memserver import __version__
from memserver.config import Leg, Settings
from memserver.dates import periods
from memserver.embedders import EMBEDDERS
from memserver.embedders.batcher import Batcher, BatcherStats
from memserver.errors import ConfigError, Conflict
from memserver.fusers import FUSERS
from memserver.methods import build
from memserver.preparing import prepared, text_hash, windows
from memserver.presenter import Presenter
from memserver.ranking import filled, ordered
from memserver.rerankers import RERANKERS
from memserver.retrievers import RETRIEVERS
from memserver.store import SqliteStore
from memserver.text import ANALYZER_VERSION, ANALYZERS
from memserver.traits import asks_for_advice, question_of
from memserver.types import (
    AddRequest,
    Deleted,
    Embedder,
    Entry,
    FloatArray,
    Hit,
    IntArray,
    Loadable,
    Message,
    Query,
    Ranked,
    Retriever,
    Scene,
    SearchRequest,
    StoredMessage,
)
from memserver.users import IndexStats, UserIndex, UserIndexes
from memserver.views import VIEWS

OPTION_WEIGHT = 0.3
"""Weight of a term of an answer option beside 1 for a term of the query: a hint, since most options are wrong."""

LEAST_COVERAGE = 0.01
"""However little the embedder knows of a query's script: where the vector legs are the only ones, their order must count."""

INSTRUCTION_WEIGHT = 0.1
"""Weight of a term of what stands around the question in a long query."""

CPU_THREADS = max(2, os.cpu_count() or 1)
"""Requests that may compute at once: more would only take the interpreter lock from each other and from /health."""


@dataclass(frozen=True, slots=True)
class Stats:
    """How an engine fares: its queue, its cache, and the room that its database takes."""

    embedder: BatcherStats
    indexes: IndexStats
    database_bytes: int


class Engine:
    """Add and Search over one store. Thread-safe; a call returns when its work is done."""

    def __init__(self, settings: Settings, embedder: Embedder) -> None:
        self._settings = settings
        self._views = {name: build(VIEWS, name, settings.options) for name in {leg.view for leg in settings.legs}}
        self._fuser = build(FUSERS, settings.fuser, settings.options)
        self._rerankers = [build(RERANKERS, name, settings.options) for name in settings.rerankers]
        for reranker in self._rerankers:
            if isinstance(reranker, Loadable):
                reranker.load()
        self._needs_vectors = any(retriever.needs_vectors for retriever in self._retrievers().values())
        if self._needs_vectors and not embedder.dimension:
            raise ConfigError(
                "MEMSERVER_LEGS has a vector leg, but MEMSERVER_EMBEDDER is none: choose an embedder or drop the leg"
            )
        self._embedder = embedder
        self._presenter = Presenter(settings.content, settings.resolve_dates, settings.fold_neighbours)
        self._stems = ANALYZERS[settings.analyzer]
        self._store = SqliteStore(
            settings.database,
            {
                "embedder": settings.embedder,
                "model": embedder.model,
                "dimension": str(embedder.dimension),
                "fingerprint": embedder.fingerprint,
                "analyzer": f"{settings.analyzer} {ANALYZER_VERSION}",
                "dates": str(settings.index_dates).lower(),
            },
        )
        self._batcher = Batcher(embedder, settings.embed_queue)
        self._users = UserIndexes(self._store, self._retrievers, settings.index_memory_mb * 2**20)
        self._adds = _KeyedLocks()
        self._computing = BoundedSemaphore(CPU_THREADS)

    @classmethod
    def open(cls, settings: Settings, embedder: Embedder | None = None) -> Engine:
        """Load the configured embedder (or take the one given) and open the store.

        Raises ``ConfigError`` if the model can't be had, or if the store was made with another one.
        """
        chosen: Embedder = embedder or build(EMBEDDERS, settings.embedder, settings.options)
        chosen.load()
        return cls(settings, chosen)

    def close(self) -> None:
        self._batcher.close()
        self._store.close()

    @property
    def index_bytes(self) -> int:
        """Memory held by the indexes of all users, estimated, in bytes."""
        return self._users.nbytes

    @property
    def salt(self) -> bytes:
        """Keys the hashes that stand for users in logs: the same for all processes over one database, and after a restart."""
        return self._store.salt

    def stats(self) -> Stats:
        """The figures of this moment; cheap, and never waits for a request."""
        return Stats(self._batcher.stats(), self._users.stats(), self._store.nbytes)

    def describe(self) -> dict[str, object]:
        """What this engine is, for /health and for the start-up log."""
        settings = self._settings
        lexical = not all(RETRIEVERS[leg.retriever].needs_vectors for leg in settings.legs)
        return {
            "version": __version__,
            "mode": "hybrid" if lexical and self._needs_vectors else "lexical" if lexical else "vector",
            "embedder": settings.embedder,
            "model": self._embedder.model,
            "dimension": self._embedder.dimension,
            "analyzer": settings.analyzer,
            "index_dates": settings.index_dates,
            "legs": {f"{leg.retriever}/{leg.view}": leg.weight for leg in settings.legs},
            "fuser": settings.fuser,
            "rerankers": list(settings.rerankers),
            "content": settings.content,
            "result_chars": settings.result_chars,
            "result_chars_choice": settings.result_chars_choice,
            "schema": self._store.schema,
        }

    # --- deletion -----------------------------------------------------------------------------------------------------

    def delete_user(self, user_id: str) -> Deleted:
        """Delete all of a user's data, for every process at once; of an unknown user, nothing. Raises ``Unavailable``."""
        deleted = self._store.delete(user_id)
        self._users.drop(user_id)
        return deleted

    def tidy(self) -> None:
        """The hourly round: delete what is older than the retention, and what still remains of anything deleted.

        Raises ``Unavailable``.
        """
        days = self._settings.retention_days
        self._store.tidy(datetime.now(UTC) - timedelta(days=days) if days else None)
        self._users.sweep()

    # --- Add ----------------------------------------------------------------------------------------------------------

    def add(self, request: AddRequest, received: datetime | None = None) -> bool:
        """Store an Add; when this returns it is durable and searchable. False for the very same Add again: nothing changes.

        ``received`` is when the Add came, if not now.
        Raises ``Conflict`` for a known request id with another body, ``Unavailable`` if nothing could be written for now.
        """
        with self._adds.hold((request.user_id, request.request_id)):
            known = self._store.find_request(request.user_id, request.request_id)
            if known is None:
                return self._store.append(request, self._entries(request), received)
            if known != request.digest:
                raise Conflict
            return False

    def _entries(self, request: AddRequest) -> list[Entry]:
        said = self._store.last_said(request.user_id, request.session_id) if request.messages else None
        with self._computing:
            messages = list(prepared(request, said, self._embedder, self._settings))
        vectors = self._vectors(request.user_id, [text for message in messages for text in message.texts])
        return [message.entry(vectors) for message in messages]

    def _vectors(self, user_id: str, texts: Sequence[str]) -> dict[bytes, FloatArray]:
        """Vectors by text hash; a text that this user already has is not embedded again."""
        wanted = {text_hash(text): text for text in texts}
        known = self._store.known_vectors(user_id, list(wanted))
        missing = [key for key in wanted if key not in known]
        known.update(zip(missing, self._batcher.embed([wanted[key] for key in missing]), strict=True))
        return known

    # --- Search -------------------------------------------------------------------------------------------------------

    def search(self, request: SearchRequest) -> list[Hit]:
        """The best messages of the user, at most ``top_k``; empty for an unknown user or a blank query."""
        if request.top_k == 0 or not (request.query.strip() or request.options):
            return []
        if self._store.head(request.user_id) is None:
            self._users.drop(request.user_id)  # another process may have deleted the user
            return []
        query = self._query(request)
        with self._computing:
            return self._found(request, query)

    def _found(self, request: SearchRequest, query: Query) -> list[Hit]:
        def fetch(positions: Sequence[int], max_image_bytes: int) -> dict[int, StoredMessage]:
            seqs = index.layout.seqs[np.asarray(positions, np.int64)].tolist()
            stored = self._store.messages(request.user_id, seqs, max_image_bytes)
            return {position: stored[seq] for position, seq in zip(positions, seqs, strict=True) if seq in stored}

        def read(positions: IntArray) -> list[Message | None]:
            stored = fetch(positions.tolist(), 0)  # rerankers read texts; a message with images is not among them
            return [stored[position].message if position in stored else None for position in positions.tolist()]

        budget = self._settings.result_chars_choice if request.options else self._settings.result_chars
        with self._users.current(request.user_id) as index:
            ranked = self._fused(query, index, request.top_k)
            for reranker in self._rerankers:
                ranked = ordered(reranker.rerank(ranked, Scene(query, index.layout, read)), index.layout)
            hits = self._presenter.present(ranked, index.layout, fetch, budget, request.top_k)
            now = self._store.head(request.user_id)
        if index.head is None or now is None or now.epoch != index.head.epoch:  # deleted meanwhile
            return []
        return hits

    def _query(self, request: SearchRequest) -> Query:
        text = request.query if request.query.strip() else "\n".join(request.options)
        with self._computing:
            asked = question_of(text)
            terms = Counter[str]()
            for option in request.options:
                terms.update(dict.fromkeys(self._stems(option), OPTION_WEIGHT))
            if len(asked) < len(text):
                terms.update(dict.fromkeys(self._stems(text), INSTRUCTION_WEIGHT))
            terms.update(self._stems(asked))
            pieces = windows(self._embedder, asked) if self._needs_vectors else []
            weight = max(LEAST_COVERAGE, self._embedder.coverage(asked)) * (
                self._settings.advice_boost if asks_for_advice(asked) else 1
            )
        return Query(terms, self._batcher.embed(pieces, urgent=True), weight, periods(text), asked)

    def _fused(self, query: Query, index: UserIndex, top_k: int) -> Ranked:
        depth = min(max(self._settings.depth, top_k), len(index.layout))
        lists = [(self._ranked(leg, query, index, depth), self._weight(leg, query)) for leg in self._settings.legs]
        return ordered(filled(self._fuser.fuse(lists, index.layout, depth), index.layout, top_k), index.layout)

    def _weight(self, leg: Leg, query: Query) -> float:
        return leg.weight * (query.vector_weight if RETRIEVERS[leg.retriever].needs_vectors else 1)

    def _ranked(self, leg: Leg, query: Query, index: UserIndex, depth: int) -> Ranked:
        return index.retrievers[leg.retriever].search(query, self._views[leg.view], index.layout, depth)

    def _retrievers(self) -> Mapping[str, Retriever]:
        names = dict.fromkeys(leg.retriever for leg in self._settings.legs)
        return {name: build(RETRIEVERS, name, self._settings.options) for name in names}


class _KeyedLocks:
    """One lock a key, for as long as somebody holds or awaits it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._held: dict[tuple[str, str], tuple[Lock, int]] = {}

    @contextmanager
    def hold(self, key: tuple[str, str]) -> Iterator[None]:
        with self._lock:
            lock, holders = self._held.get(key, (Lock(), 0))
            self._held[key] = lock, holders + 1
        try:
            with lock:
                yield
        finally:
            with self._lock:
                lock, holders = self._held.pop(key)
                if holders > 1:
                    self._held[key] = lock, holders - 1
