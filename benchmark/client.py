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
from memserver.contract import read_add, read_search
from memserver.embedders import EMBEDDERS
from memserver.engine import Engine
from memserver.methods import build, load_settings
from memserver.types import Hit

TIMEOUT = 1800.0  # seconds; what the platform grants a request


class Mode(StrEnum):
    """Which of the default legs are searched."""

    BM25 = "bm25"
    VECTOR = "vector"
    HYBRID = "hybrid"


MODES: Mapping[Mode, Mapping[str, object]] = {
    Mode.BM25: {"embedder": "none", "legs": "bm25/chunk=0.15, bm25/context=0.15, bm25/session=0.3"},
    Mode.VECTOR: {"legs": "vectors/chunk=1"},
    Mode.HYBRID: {},
}


class Memory(Protocol):
    """What is measured: anything that takes Add bodies and answers Search bodies, from several threads at once."""

    def add(self, body: bytes) -> None: ...

    def search(self, body: bytes) -> list[Hit]: ...

    def describe(self) -> Mapping[str, object]:
        """What the product says of itself: version, embedder, legs, ..."""


class EngineMemory:
    """The product in this process: the server's own reading of a request, then its engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add(self, body: bytes) -> None:
        request, _ = read_add(body)
        self._engine.add(request)

    def search(self, body: bytes) -> list[Hit]:
        return self._engine.search(read_search(body))

    def describe(self) -> Mapping[str, object]:
        return self._engine.describe()


class HttpMemory:
    """A running server. Every method raises ``BenchError`` where it can't be reached or answers with anything but a 2xx."""

    def __init__(self, url: str, api_key: str = "") -> None:
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {api_key}"} if api_key else {})
        self._client = httpx.Client(base_url=url, headers=headers, timeout=TIMEOUT)

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

    ``overrides`` are settings over those of the mode. The environment's MEMSERVER_* variables play no part, so that the same
    command gives the same figures everywhere. Raises ``ConfigError``.
    """
    with TemporaryDirectory(prefix="memserver-bench-") as directory:
        settings = load_settings({}, {**MODES[mode], **overrides, "data_dir": directory})
        embedder = CachedEmbedder(build(EMBEDDERS, settings.embedder, settings.options), cache)
        with closing(embedder), closing(Engine.open(settings, embedder=embedder)) as engine:
            yield EngineMemory(engine)


@contextmanager
def running(url: str, api_key: str) -> Iterator[HttpMemory]:
    """A running server, which keeps what is added."""
    with closing(HttpMemory(url, api_key)) as memory:
        yield memory
