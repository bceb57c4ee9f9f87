"""The two ways to the product: its engine in this process, or a running server. Both take the bytes of an Add or a Search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import httpx

from benchmark.cache import CachedEmbedder
from benchmark.errors import BenchError
from memserver.config import PREFIX, Settings
from memserver.contract import read_add, read_search
from memserver.embedders import EMBEDDERS
from memserver.engine import Engine
from memserver.methods import build, load_settings, variables
from memserver.retrievers import RETRIEVERS
from memserver.types import Hit

TIMEOUT = 1800.0  # seconds; what the platform grants a request


NOT_MEASURED = frozenset("host port data_dir workers api_keys log_level max_body_mb max_in_flight".split())
"""Settings of the server around the engine: they change no figure, and the keys are nobody's business."""


class Mode(StrEnum):
    """Which of the legs are searched: those without vectors, those over vectors, all of them."""

    BM25 = "bm25"
    VECTOR = "vector"
    HYBRID = "hybrid"


def in_mode(mode: Mode, overrides: Mapping[str, object]) -> Mapping[str, object]:
    """``overrides`` with the legs of that kind only. BM25 needs no embedder and gets none, unless ``overrides`` name one.

    Raises ``BenchError`` if no leg is left, ``ConfigError`` for a bad setting.
    """
    if mode is Mode.HYBRID:
        return overrides
    legs = [leg for leg in load_settings({}, overrides).legs if RETRIEVERS[leg.retriever].needs_vectors is (mode is Mode.VECTOR)]
    if not legs:
        raise BenchError(f"--mode {mode}: no such leg among those set")
    embedder = {"embedder": "none"} if mode is Mode.BM25 else {}
    return {**embedder, **overrides, "legs": ", ".join(map(str, legs))}


def mode_of(description: Mapping[str, Any]) -> Mode | None:
    """The mode that a product's legs amount to, None for legs unknown here; ``description``: ``Memory.describe()``."""
    names = {str(leg).partition("/")[0] for leg in description.get("legs", ())}
    if not names or not names <= RETRIEVERS.keys():  # a server of another make, or with methods of its own
        return None
    kinds = {RETRIEVERS[name].needs_vectors for name in names}
    return Mode.HYBRID if len(kinds) > 1 else Mode.VECTOR if kinds == {True} else Mode.BM25


class Memory(Protocol):
    """What is measured: anything that takes Add bodies and answers Search bodies, from several threads at once."""

    def add(self, body: bytes) -> None: ...

    def search(self, body: bytes) -> list[Hit]: ...

    def describe(self) -> Mapping[str, object]:
        """What the product says of itself: version, embedder, legs, ..."""


class EngineMemory:
    """The product in this process: the server's own reading of a request, then its engine."""

    def __init__(self, engine: Engine, settings: Settings, embedder: CachedEmbedder) -> None:
        self._engine = engine
        self._settings = settings
        self._embedder = embedder

    def add(self, body: bytes) -> None:
        request, _ = read_add(body)
        self._engine.add(request)

    def search(self, body: bytes) -> list[Hit]:
        return self._engine.search(read_search(body))

    def describe(self) -> Mapping[str, object]:
        """With the weights' fingerprint and every setting that is in effect, beside what the engine says of itself."""
        values = {variable.name.removeprefix(PREFIX).lower(): variable.value for variable in variables(self._settings)}
        settings = {name: value for name, value in values.items() if name not in NOT_MEASURED}
        return {**self._engine.describe(), "fingerprint": self._embedder.fingerprint, "settings": settings}

    def usage(self) -> Mapping[str, int]:
        """Bytes of all indexes and of the database; what was embedded, tokens by estimate, whether or not it was in the cache."""
        database = self._settings.data_dir.glob("memserver.db*")
        return {
            "index_bytes": self._engine.index_bytes,
            "database_bytes": sum(file.stat().st_size for file in database),
            "embedded_texts": self._embedder.texts,
            "embedded_tokens": self._embedder.tokens,
        }

    def cached(self) -> Mapping[str, int | None]:
        """How many of the embedded texts came from the cache, which makes latencies look better than they are."""
        return {"cache_hits": self._embedder.hits, "cache_misses": self._embedder.misses}


class HttpMemory:
    """A running server. Every method raises ``BenchError`` where it can't be reached or answers with anything but a 2xx.

    So does the constructor for a ``url`` that is none.
    """

    def __init__(self, url: str, api_key: str = "") -> None:
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {api_key}"} if api_key else {})
        try:
            self._client = httpx.Client(base_url=url, headers=headers, timeout=TIMEOUT)
        except httpx.InvalidURL as error:  # no HTTPError, unlike all else that httpx raises
            raise BenchError(f"--url {url}: not an address ({error})") from error

    def add(self, body: bytes) -> None:
        self._json("POST", "/add", body)

    def search(self, body: bytes) -> list[Hit]:
        answer = self._json("POST", "/search", body)
        try:
            return [Hit(item["id"], item["content"], item["score"], item.get("created_at")) for item in answer["data"]]
        except (KeyError, TypeError) as error:
            raise BenchError("POST /search: hits without id, content and score; is --url a memserver?") from error

    def describe(self) -> Mapping[str, object]:
        description: Mapping[str, object] = self._json("GET", "/health")
        return description

    def usage(self) -> Mapping[str, int]:
        """Nothing: a server doesn't tell."""
        return {}

    def cached(self) -> Mapping[str, int | None]:
        """Unknown: a server keeps its own vectors, or none."""
        return {"cache_hits": None, "cache_misses": None}

    def close(self) -> None:
        self._client.close()

    def _json(self, method: str, path: str, body: bytes | None = None) -> Any:
        try:
            response = self._client.request(method, path, content=body)
        except httpx.HTTPError as error:
            raise BenchError(f"{method} {path}: no answer ({type(error).__name__}); is a server running at --url?") from error
        if not response.is_success:
            raise BenchError(f"{method} {path}: answered {response.status_code} {response.text[:200]}")
        try:
            return response.json()
        except ValueError as error:
            raise BenchError(f"{method} {path}: the answer is not JSON; is --url a memserver?") from error


@contextmanager
def in_process(mode: Mode, overrides: Mapping[str, object], cache: Path) -> Iterator[EngineMemory]:
    """An engine of its own on an empty data directory that is deleted afterwards; vectors are kept in ``cache``.

    ``overrides`` are settings, ``mode`` says which of their legs are searched. The environment's MEMSERVER_* variables play no
    part, so that the same command gives the same figures everywhere. Raises ``ConfigError``.
    """
    with TemporaryDirectory(prefix="memserver-bench-") as directory:
        settings = load_settings({}, {**in_mode(mode, overrides), "data_dir": directory})
        embedder = CachedEmbedder(build(EMBEDDERS, settings.embedder, settings.options), cache)
        with closing(embedder), closing(Engine.open(settings, embedder=embedder)) as engine:
            yield EngineMemory(engine, settings, embedder)


@contextmanager
def running(url: str, api_key: str) -> Iterator[HttpMemory]:
    """A running server, which keeps what is added."""
    with closing(HttpMemory(url, api_key)) as memory:
        yield memory
