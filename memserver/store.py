"""The Store on SQLite: one file, one writer a process, a few readers. ``migrations``, ``erasure`` and ``upkeep`` use sqlite too.

Any number of processes may share the file: writers queue in SQLite (BEGIN IMMEDIATE and the busy timeout), readers see the
last commit. Vectors are kept as float16: a unit vector's inner products change by less than 1e-3.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from queue import LifoQueue
from threading import Lock
from typing import Any

import numpy as np

from memserver.erasure import claim, due, erase, instant, quiet, rebuild, rebuild_due, wipe_log
from memserver.errors import ConfigError, Conflict, EmbedderError, StoreError
from memserver.migrations import prepare, salt, transaction
from memserver.types import AddRequest, Deleted, Entry, FloatArray, Head, Image, Message, Part, Row, StoredMessage, Traits

READERS = 8  # connections; more threads than that wait for one
RECENT = 64  # messages looked through for the last one of a session
SLICE = 500  # parameters a statement, below every SQLite's limit of 999
ADVICE = {
    sqlite3.SQLITE_BUSY: "another process holds it for longer than the busy timeout; end that one, or try again",
    sqlite3.SQLITE_FULL: "the disk is full; free some space, then try again",
    sqlite3.SQLITE_IOERR: "the disk fails or is full; check it, then try again",
    sqlite3.SQLITE_READONLY: "it can't be written; make the file and its folder writable",
    sqlite3.SQLITE_CANTOPEN: "it can't be opened; check that its folder exists and is writable",
    sqlite3.SQLITE_NOTADB: "it is not an SQLite database; use another data directory",
    sqlite3.SQLITE_CORRUPT: "it is damaged; restore a copy, or use another data directory",
}


class SqliteStore:
    """The Store in the file ``path``, made if absent.

    ``stamp`` names what the stored vectors and stems depend on (it must have a "dimension"); the first start writes it down.
    ``busy_timeout``, in seconds, is how long a write waits for those of other processes.

    Raises ``ConfigError`` if the file can't be used, or has the stamp of another model.
    """

    schema: int
    """How many migrations the database has."""

    salt: bytes
    """Random, 16 bytes, made with the database: keys the hashes that stand for users outside of it."""

    def __init__(self, path: Path, stamp: Mapping[str, str], busy_timeout: float = 30.0) -> None:
        self._path = path
        self._busy_timeout = busy_timeout
        self._dimension = int(stamp["dimension"])
        self._write_lock = Lock()
        self._readers: LifoQueue[sqlite3.Connection | None] = LifoQueue()
        for _ in range(READERS):
            self._readers.put(None)
        self._closed = False
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"the data directory {path.parent} can't be made ({error.strerror}): use another one") from error
        try:
            self._writer = self._connect()
            try:
                self.schema = prepare(self._writer, stamp, busy_timeout)
                self.salt = salt(self._writer)
            except BaseException:
                self._writer.close()
                raise
        except sqlite3.Error as error:
            raise ConfigError(f"the database {path} can't be used: {_advice(error)}") from error

    @property
    def nbytes(self) -> int:
        """Room on disk of the database, its write-ahead log included, in bytes."""
        files = (self._path, *(self._path.with_name(self._path.name + suffix) for suffix in ("-wal", "-shm")))
        return sum(file.stat().st_size for file in files if file.exists())

    def find_request(self, user_id: str, request_id: str) -> str | None:
        with self._reading() as db:
            return _find_request(db, user_id, request_id)

    def known_vectors(self, user_id: str, text_hashes: Sequence[bytes]) -> dict[bytes, FloatArray]:
        sql = "SELECT vector FROM chunks WHERE user_id = ? AND text_hash = ? LIMIT 1"  # a text may be stored a thousand times
        with self._reading() as db:
            found = {text_hash: db.execute(sql, (user_id, text_hash)).fetchone() for text_hash in text_hashes}
        stored = {text_hash: row[0] for text_hash, row in found.items() if row}
        return dict(zip(stored, self._vectors(list(stored.values())), strict=True))

    def append(self, request: AddRequest, entries: Sequence[Entry], received: datetime | None = None) -> bool:
        user_id, now = request.user_id, instant(received or datetime.now(UTC))
        if any(chunk.vector.shape != (self._dimension,) for entry in entries for chunk in entry.chunks):
            raise EmbedderError("the embedder gave vectors of another dimension than the database has; check its settings")
        with self._writing() as db:
            stored = _find_request(db, user_id, request.request_id)
            if stored is not None:
                if stored != request.digest:
                    raise Conflict
                return False
            head = _head(db, user_id)
            db.execute(
                "INSERT INTO users (user_id, head, epoch, created_at) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (user_id) DO UPDATE SET head = head + excluded.head",
                (user_id, len(entries), secrets.randbits(63), now),
            )
            sent = {"request_id": request.request_id, "digest": request.digest, "session_id": request.session_id}
            _insert(db, "requests", user_id=user_id, **sent, messages=len(entries), created_at=now)
            for seq, entry in enumerate(entries, start=head.seq + 1 if head else 1):
                _insert_entry(db, user_id, request.session_id, seq, now, entry)
            return True

    def head(self, user_id: str) -> Head | None:
        with self._reading() as db:
            return _head(db, user_id)

    def read_since(self, user_id: str, seen: Head | None) -> tuple[Head | None, list[Row]]:
        with self._reading() as db:
            head = _head(db, user_id)
            after = seen.seq if head and seen and seen.epoch == head.epoch else 0
            if head is None or head.seq <= after:
                return head, []
            rows = db.execute(
                "SELECT seq, id, session_id, timestamp, stems, counts, length, speaker, asking, placed, continues"
                " FROM messages JOIN postings USING (user_id, seq) WHERE user_id = ? AND seq > ? ORDER BY seq",
                (user_id, after),
            ).fetchall()
            chunks = db.execute(
                "SELECT seq, vector FROM chunks WHERE user_id = ? AND seq > ? ORDER BY seq, part", (user_id, after)
            ).fetchall()
        vectors = self._vectors([blob for _, blob in chunks])
        bounds = np.searchsorted([seq for seq, _ in chunks], [*(row[0] for row in rows), head.seq + 1]).tolist()
        return head, [
            Row(
                *(seq, id_, session_id, timestamp, _traits(*seen)),
                *(stems.split(" ") if stems else (), np.frombuffer(counts, "<u2"), vectors[start:end]),
            )
            for (seq, id_, session_id, timestamp, stems, counts, *seen), (start, end) in zip(rows, pairwise(bounds), strict=True)
        ]

    def messages(self, user_id: str, seqs: Sequence[int], max_image_bytes: int) -> dict[int, StoredMessage]:
        of_seqs = "SELECT seq, id, session_id, role, text, timestamp, parts FROM messages WHERE user_id = ? AND seq IN ({})"
        sizes_of = "SELECT digest, length(data) FROM images WHERE user_id = ? AND digest IN ({})"
        images_of = "SELECT digest, mime, data FROM images WHERE user_id = ? AND digest IN ({})"
        with self._reading() as db:
            rows = {row[0]: row for row in _select_in(db, of_seqs, user_id, seqs)}
            parts = {seq: json.loads(rows[seq][-1]) for seq in seqs if seq in rows and rows[seq][-1] is not None}
            shown = {seq: [part["image"] for part in listed if "image" in part] for seq, listed in parts.items()}
            sizes = dict(_select_in(db, sizes_of, user_id, list({digest for digests in shown.values() for digest in digests})))
            for seq, digests in shown.items():
                size = sum(sizes[digest] for digest in digests)
                if size > max_image_bytes:
                    del rows[seq]
                else:
                    max_image_bytes -= size
            kept = {digest for seq, digests in shown.items() if seq in rows for digest in digests}
            images = {row[0]: Image(*row) for row in _select_in(db, images_of, user_id, list(kept))}
        return {
            seq: StoredMessage(seq, id_, session_id, Message(role, text, timestamp, load_parts(parts.get(seq, []), images)))
            for seq, id_, session_id, role, text, timestamp, _ in rows.values()
        }

    def last_said(self, user_id: str, session_id: str) -> StoredMessage | None:
        with self._reading() as db:
            head = _head(db, user_id)
            row = db.execute(
                "SELECT seq FROM messages WHERE user_id = ? AND seq > ? AND session_id = ? ORDER BY seq DESC LIMIT 1",
                (user_id, head.seq - RECENT if head else 0, session_id),
            ).fetchone()
        return self.messages(user_id, [row[0]], 0).get(row[0]) if row else None

    def delete(self, user_id: str) -> Deleted:
        with self._writing() as db:
            gone = erase(db, self.salt, user_id, "user")
        return Deleted(gone.messages, self._wiped())

    def tidy(self, before: datetime | None) -> None:
        with self._writing() as db:
            if not claim(db):
                return
        with self._reading() as db:
            old = due(db, before) if before else {}
        for user_id in old:  # a transaction each: an Add never waits for more than one
            with self._writing() as db:
                erase(db, self.salt, user_id, "retention", before)
        with self._reading() as db:
            deleted, undisturbed = rebuild_due(db), quiet(db)
        if deleted and undisturbed:
            with store_errors():
                rebuild(self._path)
        if deleted:
            self._wiped()

    def _wiped(self) -> bool:
        with store_errors():
            return wipe_log(self._path, self._busy_timeout)

    def close(self) -> None:
        """Close the file once the reads and the write under way have ended; whatever comes later is a ``StoreError``."""
        with self._write_lock:
            if self._closed:
                return
            self._closed = True
            self._writer.close()
        readers = [self._readers.get() for _ in range(READERS)]
        for reader in readers:
            if reader is not None:
                reader.close()
            self._readers.put(None)

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(self._path, timeout=self._busy_timeout, isolation_level=None, check_same_thread=False)
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA secure_delete = ON")
        return db

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        if not self._write_lock.acquire(timeout=self._busy_timeout):  # those before us may wait as long for another process
            raise StoreError("the database failed: " + ADVICE[sqlite3.SQLITE_BUSY])
        try:
            with store_errors():
                self._check_open()
                with transaction(self._writer, "IMMEDIATE"):
                    yield self._writer
        finally:
            self._write_lock.release()

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """A connection that sees one snapshot throughout."""
        with store_errors():
            reader = self._readers.get()
            try:
                self._check_open()
                reader = reader or self._connect()
                with transaction(reader, "DEFERRED"):
                    yield reader
            finally:
                self._readers.put(reader)

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("the server is shutting down; send the request again when it is back")

    def _vectors(self, blobs: Sequence[bytes]) -> FloatArray:
        return np.frombuffer(b"".join(blobs), "<f2").astype(np.float32).reshape(len(blobs), self._dimension)


@contextmanager
def store_errors() -> Iterator[None]:
    """What SQLite raises as a ``StoreError`` that says what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(f"the database failed: {_advice(error)}") from error


def _advice(error: sqlite3.Error) -> str:
    primary = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return ADVICE.get(primary, f"{getattr(error, 'sqlite_errorname', type(error).__name__)}, see SQLite's result codes")


def _find_request(db: sqlite3.Connection, user_id: str, request_id: str) -> str | None:
    sql = "SELECT digest FROM requests WHERE user_id = ? AND request_id = ?"
    row = db.execute(sql, (user_id, request_id)).fetchone()
    return str(row[0]) if row else None


def _head(db: sqlite3.Connection, user_id: str) -> Head | None:
    row = db.execute("SELECT head, epoch FROM users WHERE user_id = ?", (user_id,)).fetchone()
    return Head(*row) if row else None


def _select_in(db: sqlite3.Connection, sql: str, user_id: str, keys: Sequence[object]) -> Iterator[tuple[Any, ...]]:
    """The user's rows whose key is among ``keys``: they fill the ``{}`` of ``sql``, a slice at a time."""
    for start in range(0, len(keys), SLICE):
        batch = keys[start : start + SLICE]
        yield from db.execute(sql.format(", ".join("?" * len(batch))), (user_id, *batch))


def _insert(db: sqlite3.Connection, table: str, **values: object) -> None:
    columns, marks = ", ".join(f'"{column}"' for column in values), ", ".join("?" * len(values))
    db.execute(f"INSERT INTO {table} ({columns}) VALUES ({marks})", tuple(values.values()))


def _insert_entry(db: sqlite3.Connection, user_id: str, session_id: str, seq: int, now: str, entry: Entry) -> None:
    key, message = {"user_id": user_id, "seq": seq}, entry.message
    said = {"role": message.role, "text": message.text, "timestamp": message.timestamp, "parts": _dump_parts(message.parts)}
    _insert(db, "messages", **key, id=entry.id, session_id=session_id, created_at=now, **said)
    traits = asdict(entry.traits) | {"speaker": " ".join(entry.traits.speaker)}
    _insert(db, "postings", **key, stems=" ".join(entry.stems), counts=entry.counts.astype("<u2").tobytes(), **traits)
    for part, chunk in enumerate(entry.chunks):
        _insert(db, "chunks", **key, part=part, text_hash=chunk.text_hash, vector=chunk.vector.astype("<f2").tobytes())
    for image in (part for part in message.parts if isinstance(part, Image)):
        sql = "INSERT INTO images (user_id, digest, mime, data) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
        db.execute(sql, (user_id, image.digest, image.mime, image.data))


def _traits(length: int, speaker: str, asking: float, placed: int | None, continues: str | None) -> Traits:
    return Traits(length, tuple(speaker.split()), asking, placed, continues)


def _dump_parts(parts: Sequence[Part]) -> str | None:
    listed = [{"image": part.digest} if isinstance(part, Image) else {"text": part} for part in parts]
    return json.dumps(listed, ensure_ascii=False) if listed else None


def load_parts(listed: Sequence[Mapping[str, str]], images: Mapping[str, Image]) -> tuple[Part, ...]:
    """The parts of a message from the column ``parts``; ``images`` by digest."""
    return tuple(images[part["image"]] if "image" in part else part["text"] for part in listed)
