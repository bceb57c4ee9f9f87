"""The whole flow of Add and Search, and the only place where the stages meet."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import BoundedSemaphore, Lock

import numpy as np

from memserver import __version__
from memserver.config import Leg, Settings
from memserver.embedders import EMBEDDERS
from memserver.embedders.batcher import Batcher
from memserver.errors import ConfigError, Conflict
from memserver.fusers import FUSERS
from memserver.methods import build
from memserver.presenter import present
from memserver.ranking import filled, ordered
from memserver.rerankers import RERANKERS
from memserver.retrievers import RETRIEVERS
from memserver.store import SqliteStore
from memserver.text import ANALYZER_VERSION, ANALYZERS, index_prefix
from memserver.types import (
    AddRequest,
    Chunk,
    Embedder,
    Entry,
    FloatArray,
    Hit,
    Message,
    Query,
    Ranked,
    Retriever,
    SearchRequest,
)
from memserver.users import UserIndex, UserIndexes
from memserver.views import VIEWS

OPTION_WEIGHT = 0.3
"""Weight of a term of an answer option beside 1 for a term of the query: a hint, since most options are wrong."""

SPARE = 4
"""How many times ``top_k`` messages are considered for the slots, since long ones may not fit the length budget."""

MAX_IMAGE_BYTES = 30 * 2**20
"""Of all images of a response, decoded; 40 MiB as base64."""

CPU_THREADS = max(2, os.cpu_count() or 1)
"""Requests that may compute at once: more would only take the interpreter lock from each other and from /health."""


def hit_id(user_id: str, request_id: str, position: int) -> str:
    """The id of the ``position``-th kept message of an Add: opaque, and the same wherever and whenever that Add is stored."""
    key = "\0".join((str(len(user_id)), user_id, request_id, str(position)))
    return hashlib.blake2b(key.encode(), digest_size=12).hexdigest()


class Engine:
    """Add and Search over one store. Thread-safe; a call returns when its work is done."""

    def __init__(self, settings: Settings, embedder: Embedder) -> None:
        self._settings = settings
        self._views = {name: build(VIEWS, name, settings.options) for name in {leg.view for leg in settings.legs}}
        self._fuser = build(FUSERS, settings.fuser, settings.options)
        self._rerankers = [build(RERANKERS, name, settings.options) for name in settings.rerankers]
        self._needs_vectors = any(retriever.needs_vectors for retriever in self._retrievers().values())
        if self._needs_vectors and not embedder.dimension:
            raise ConfigError(
                "MEMSERVER_LEGS has a vector leg, but MEMSERVER_EMBEDDER is none: choose an embedder or drop the leg"
            )
        self._embedder = embedder
        self._stems = ANALYZERS[settings.analyzer]
        self._store = SqliteStore(
            settings.data_dir / "memserver.db",
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

    # --- Add ----------------------------------------------------------------------------------------------------------

    def add(self, request: AddRequest) -> None:
        """Store an Add; when this returns it is durable and searchable. The very same Add again changes nothing.

        Raises ``Conflict`` for a known request id with another body, ``Unavailable`` if nothing could be written for now.
        """
        with self._adds.hold((request.user_id, request.request_id)):
            known = self._store.find_request(request.user_id, request.request_id)
            if known is None:
                self._store.append(request, self._entries(request))
            elif known != request.digest:
                raise Conflict

    def _entries(self, request: AddRequest) -> list[Entry]:
        with self._computing:
            prepared = [self._prepare(message) for message in request.messages]
        vectors = self._vectors(request.user_id, [text for item in prepared for text in item.texts])
        return [
            item.entry(hit_id(request.user_id, request.request_id, position), vectors) for position, item in enumerate(prepared)
        ]

    def _prepare(self, message: Message) -> _Prepared:
        timestamp = message.timestamp if self._settings.index_dates else None
        prefix = index_prefix(message.role, timestamp, message.text)
        windows = self._windows(message.text, prefix)
        return _Prepared(
            message=message,
            terms=Counter(self._stems(prefix + message.text)),
            windows=windows,
            texts=[prefix + message.text[start:end] for start, end in windows],
        )

    def _windows(self, text: str, prefix: str) -> list[tuple[int, int]]:
        """The embedder's windows that have more than blanks, which some embedders refuse."""
        return [(start, end) for start, end in self._embedder.windows(text, prefix) if text[start:end].strip()]

    def _vectors(self, user_id: str, texts: Sequence[str]) -> dict[bytes, FloatArray]:
        """Vectors by text hash; a text that this user already has is not embedded again."""
        wanted = {_text_hash(text): text for text in texts}
        known = self._store.known_vectors(user_id, list(wanted))
        missing = [key for key in wanted if key not in known]
        known.update(zip(missing, self._batcher.embed([wanted[key] for key in missing]), strict=True))
        return known

    # --- Search -------------------------------------------------------------------------------------------------------

    def search(self, request: SearchRequest) -> list[Hit]:
        """The best messages of the user, at most ``top_k``; empty for an unknown user or a blank query."""
        if request.top_k == 0 or not (request.query.strip() or request.options) or self._store.head(request.user_id) is None:
            return []
        query = self._query(request)
        with self._computing:
            return self._found(request, query)

    def _found(self, request: SearchRequest, query: Query) -> list[Hit]:
        user_id = request.user_id
        with self._users.current(user_id) as index:
            head, ranked = index.head, self._rank(query, index, request.top_k)
        ranking = list(zip((ranked.entries + 1).tolist(), ranked.scores.tolist(), strict=True))[: SPARE * request.top_k]
        messages = self._store.messages(user_id, [seq for seq, _ in ranking], MAX_IMAGE_BYTES)
        now = self._store.head(user_id)
        if head is None or now is None or now.epoch != head.epoch:  # deleted meanwhile: the numbers may be new messages'
            return []
        budget = self._settings.result_chars_choice if request.options else self._settings.result_chars
        return present(ranking, messages, self._settings.content, budget, request.top_k)

    def _query(self, request: SearchRequest) -> Query:
        text = request.query if request.query.strip() else "\n".join(request.options)
        with self._computing:
            terms = Counter[str]()
            for option in request.options:
                terms.update(dict.fromkeys(self._stems(option), OPTION_WEIGHT))
            terms.update(self._stems(text))
            windows = self._windows(text, "") if self._needs_vectors else []
        return Query(terms, self._batcher.embed([text[start:end] for start, end in windows], urgent=True))

    def _rank(self, query: Query, index: UserIndex, top_k: int) -> Ranked:
        depth = min(max(self._settings.depth, top_k), len(index.layout))
        lists = [(self._ranked(leg, query, index, depth), leg.weight) for leg in self._settings.legs]
        ranked = ordered(filled(self._fuser.fuse(lists, index.layout, depth), index.layout, top_k), index.layout)
        for reranker in self._rerankers:
            ranked = ordered(reranker.rerank(ranked, index.layout), index.layout)
        return ranked

    def _ranked(self, leg: Leg, query: Query, index: UserIndex, depth: int) -> Ranked:
        return index.retrievers[leg.retriever].search(query, self._views[leg.view], index.layout, depth)

    def _retrievers(self) -> Mapping[str, Retriever]:
        names = dict.fromkeys(leg.retriever for leg in self._settings.legs)
        return {name: build(RETRIEVERS, name, self._settings.options) for name in names}


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A message on its way to an Entry: term counts, and its windows with the texts to embed."""

    message: Message
    terms: Counter[str]
    windows: list[tuple[int, int]]
    texts: list[str]

    def entry(self, entry_id: str, vectors: Mapping[bytes, FloatArray]) -> Entry:
        hashes = [_text_hash(text) for text in self.texts]
        return Entry(
            id=entry_id,
            message=self.message,
            stems=tuple(self.terms),
            counts=np.minimum(list(self.terms.values()), 65_535).astype(np.uint16),
            chunks=tuple(Chunk(start, end, key, vectors[key]) for (start, end), key in zip(self.windows, hashes, strict=True)),
        )


def _text_hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


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
