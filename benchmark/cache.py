"""Vectors on disk: a text that was embedded once, in this run or an earlier one, is not embedded again."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from threading import Lock

import numpy as np

from benchmark.errors import BenchError
from benchmark.evidence import BYTES_PER_TOKEN
from memserver.types import Embedder, FloatArray

FILE = "vectors.sqlite"

SCHEMA = """
CREATE TABLE IF NOT EXISTS vectors (fingerprint TEXT, text BLOB, vector BLOB, PRIMARY KEY (fingerprint, text)) WITHOUT ROWID
"""


class CachedEmbedder:
    """An Embedder that asks ``directory``/vectors.sqlite first. The key is the embedder's fingerprint and a hash of the text.

    Vectors are kept as float32, bit for bit, so a cached run equals the first one. Several processes may share the file.
    ``texts`` counts what the product asked for, cached or not: what a run without the cache would embed; ``misses`` those of
    them that were embedded, ``hits`` the rest, whose time is that of a look-up.
    Raises ``BenchError`` where the folder can't be used.
    """

    def __init__(self, embedder: Embedder, directory: Path) -> None:
        self._embedder = embedder
        self._lock = Lock()
        self._bytes = 0
        self.texts = 0
        self.misses = 0
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(directory / FILE, timeout=60, isolation_level=None, check_same_thread=False)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")  # what a power cut loses is embedded again
            self._database.execute(SCHEMA)
        except (OSError, sqlite3.Error) as error:
            raise BenchError(f"{directory}: vectors can't be kept there ({error}); give another folder") from error

    @property
    def tokens(self) -> int:
        """Of ``texts``, estimated from their length: one figure for all models, and no second tokenization of every text."""
        return self._bytes // BYTES_PER_TOKEN

    @property
    def hits(self) -> int:
        return self.texts - self.misses

    @property
    def batch_size(self) -> int:
        return self._embedder.batch_size

    @property
    def concurrency(self) -> int:
        return self._embedder.concurrency

    @property
    def model(self) -> str:
        return self._embedder.model

    @property
    def dimension(self) -> int:
        return self._embedder.dimension

    @property
    def fingerprint(self) -> str:
        return self._embedder.fingerprint

    def load(self) -> None:
        self._embedder.load()

    def coverage(self, text: str) -> float:
        return self._embedder.coverage(text)

    def windows(self, text: str, prefix: str) -> list[tuple[int, int]]:
        return self._embedder.windows(text, prefix)

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """As the Protocol has it; only texts that are not on disk reach the embedder."""
        encoded = [text.encode() for text in texts]
        with self._lock:
            self.texts += len(texts)
            self._bytes += sum(map(len, encoded))
        keys = [blake2b(text, digest_size=16).digest() for text in encoded]
        vectors = self._read(keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in vectors}
        if missing:
            with self._lock:
                self.misses += len(missing)
            fresh = dict(zip(missing, self._embedder.embed(list(missing.values())), strict=True))
            self._write(fresh)
            vectors |= fresh
        return np.array([vectors[key] for key in keys], dtype=np.float32).reshape(len(texts), self.dimension)

    def close(self) -> None:
        self._database.close()

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, FloatArray]:
        marks = ", ".join("?" * len(keys))
        statement = f"SELECT text, vector FROM vectors WHERE fingerprint = ? AND text IN ({marks})"
        with self._lock:
            rows = self._database.execute(statement, [self.fingerprint, *keys]).fetchall()
        return {key: np.frombuffer(vector, dtype="<f4") for key, vector in rows}

    def _write(self, vectors: dict[bytes, FloatArray]) -> None:
        rows = [(self.fingerprint, key, vector.astype("<f4").tobytes()) for key, vector in vectors.items()]
        with self._lock, self._database:
            self._database.execute("BEGIN IMMEDIATE")
            self._database.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?, ?)", rows)
