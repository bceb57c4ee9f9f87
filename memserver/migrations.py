"""Makes a database file ready: its schema, as numbered migrations, and the stamp of the model its vectors are from.

A migration that has shipped is never edited: the next one changes what it made.
"""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

from sqlite_utils import Database, Migrations

from memserver.errors import ConfigError

# A row of a clustered table should fit a quarter of a page: with 8,192 a vector of 1,024 dimensions took 2.5 times the room.
PAGE_BYTES = 16384
# WITHOUT ROWID keeps a user's rows side by side, for they are read together.
TABLES = (
    """CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID""",
    """CREATE TABLE users (
        user_id TEXT PRIMARY KEY, head INTEGER NOT NULL, epoch INTEGER NOT NULL, created_at TEXT NOT NULL
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE requests (
        user_id TEXT, request_id TEXT, digest TEXT NOT NULL, session_id TEXT NOT NULL, messages INTEGER NOT NULL,
        created_at TEXT NOT NULL, PRIMARY KEY (user_id, request_id)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE messages (
        user_id TEXT, seq INTEGER, id TEXT NOT NULL, session_id TEXT NOT NULL, role TEXT NOT NULL, timestamp INTEGER,
        created_at TEXT NOT NULL, text TEXT NOT NULL, parts TEXT, PRIMARY KEY (user_id, seq)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE postings (
        user_id TEXT, seq INTEGER, stems TEXT NOT NULL, counts BLOB NOT NULL, PRIMARY KEY (user_id, seq)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE chunks (
        user_id TEXT, seq INTEGER, part INTEGER, start INTEGER NOT NULL, "end" INTEGER NOT NULL, text_hash BLOB NOT NULL,
        vector BLOB NOT NULL, PRIMARY KEY (user_id, seq, part)
    ) STRICT, WITHOUT ROWID""",
    """CREATE INDEX chunks_by_text ON chunks (user_id, text_hash)""",
    """CREATE TABLE images (
        user_id TEXT NOT NULL, digest TEXT NOT NULL, mime TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (user_id, digest)
    ) STRICT""",
)


def m001_memories(db: Database) -> None:
    for statement in TABLES:
        db.execute(statement)


def m002_traits(db: Database) -> None:
    """Messages stored before have no speaker, ask nothing and stand in the order of their arrival."""
    for column in ("length INTEGER NOT NULL DEFAULT 0", "speaker TEXT NOT NULL DEFAULT ''", "asking REAL NOT NULL DEFAULT 0"):
        db.execute(f"ALTER TABLE postings ADD COLUMN {column}")
    for column in ("placed INTEGER", "continues TEXT"):
        db.execute(f"ALTER TABLE postings ADD COLUMN {column}")
    for column in ("start", '"end"'):  # of windows: nothing reads them
        db.execute(f"ALTER TABLE chunks DROP COLUMN {column}")
    db.execute(
        "UPDATE postings SET length = (SELECT length(text) FROM messages"
        " WHERE messages.user_id = postings.user_id AND messages.seq = postings.seq)"
    )


def m003_journal(db: Database) -> None:
    db.execute(
        """CREATE TABLE journal (
            number INTEGER PRIMARY KEY, at TEXT NOT NULL, reason TEXT NOT NULL, user TEXT NOT NULL, adds INTEGER NOT NULL,
            messages INTEGER NOT NULL
        ) STRICT"""
    )


MIGRATIONS: tuple[Callable[[Database], None], ...] = (m001_memories, m002_traits, m003_journal)


def prepare(connection: sqlite3.Connection, stamp: Mapping[str, str], timeout: float) -> int:
    """Bring the schema up to date and check the stamp, or write it if there is none; the number of migrations applied.

    Any number of processes may do so at once. Raises ``ConfigError`` if the file belongs to other settings or a newer release.
    """
    db = Database(connection, execute_plugins=False)
    db.execute(f"PRAGMA page_size = {PAGE_BYTES}")
    _enable_wal(db, timeout)
    with transaction(connection, "IMMEDIATE"):
        schema = _migrate(db)
        stored = dict(db.execute("SELECT key, value FROM meta").fetchall())
        if not stored:
            connection.executemany("INSERT INTO meta (key, value) VALUES (?, ?)", list(stamp.items()))
            return schema
    differing = [f"{key} was {stored.get(key)!r} and is now {stamp[key]!r}" for key in stamp if stored.get(key) != stamp[key]]
    if differing:
        raise ConfigError(
            f"the database was written with other settings: {'; '.join(differing)}."
            " Start with the former settings, or use another data directory"
        )
    return schema


def salt(connection: sqlite3.Connection) -> bytes:
    """The database's own salt, 16 random bytes; made at the first call, whichever process it comes from."""
    connection.execute("INSERT INTO meta (key, value) VALUES ('salt', ?) ON CONFLICT DO NOTHING", (secrets.token_hex(16),))
    ((value,),) = connection.execute("SELECT value FROM meta WHERE key = 'salt'").fetchall()
    return bytes.fromhex(value)


def complete(connection: sqlite3.Connection) -> bool:
    """Whether the database has all migrations of this release and no other."""
    applied = connection.execute("SELECT name FROM _sqlite_migrations").fetchall()
    return {name for (name,) in applied} == {migration.__name__ for migration in MIGRATIONS}


@contextmanager
def transaction(connection: sqlite3.Connection, mode: Literal["DEFERRED", "IMMEDIATE"]) -> Iterator[None]:
    """Commit at the end, roll back on any error. IMMEDIATE waits for other writers at once, so no later statement has to."""
    connection.execute(f"BEGIN {mode}")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite itself rolls back after some errors
            connection.execute("ROLLBACK")
        raise


def _enable_wal(db: Database, timeout: float) -> None:
    """Ask until the deadline: while another process does the same, SQLite answers "busy" at once, whatever its timeout."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            return db.enable_wal()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _migrate(db: Database) -> int:
    schema = Migrations("memserver")
    for migration in MIGRATIONS:
        schema(name=migration.__name__)(migration)
    known = {migration.__name__ for migration in MIGRATIONS}
    if any(applied.name not in known for applied in schema.applied(db)):
        raise ConfigError("the database was written by a newer memserver: run that release, or use another data directory")
    schema.apply(db)
    return len(MIGRATIONS)
