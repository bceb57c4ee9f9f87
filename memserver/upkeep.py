"""What operators read and copy of a database, also while servers run: connections for it, figures, backups."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO, Literal

from memserver.erasure import WRITE_SECONDS, instant, journal
from memserver.errors import ConfigError
from memserver.ids import user_hash
from memserver.migrations import complete
from memserver.store import store_errors

LATEST = 20  # users and deletions that are listed
MINUTES = (1, 5, 60)


@dataclass(frozen=True, slots=True)
class Figures:
    """``file_bytes``: the database with its log. ``adds``: those of the last minutes, by minutes. ``last_add``: of all users.

    ``latest``: the users written last, hashed, and when. ``journal``: the last deletions. Times are ISO 8601 in UTC.
    """

    users: int
    messages: int
    chunks: int
    file_bytes: int
    adds: Mapping[int, int]
    last_add: str | None
    latest: Sequence[Mapping[str, str]]
    journal: Sequence[Mapping[str, object]]


@contextmanager
def opened(path: Path, mode: Literal["ro", "rw"]) -> Iterator[sqlite3.Connection]:
    """A connection to an existing database, to read it or to delete from it.

    Raises ``ConfigError`` where there is none or one of another release, ``StoreError`` where it fails.
    """
    if not path.is_file():
        raise ConfigError(f"there is no database {path}: name its folder with --data-dir or MEMSERVER_DATA_DIR")
    with store_errors(), closing(_connected(path, mode)) as db:
        if not complete(db):
            raise ConfigError(f"the database {path} is of another release: start that one, or serve it once with this one")
        yield db


def stored_salt(db: sqlite3.Connection) -> bytes:
    """The salt of the database, which its first server made."""
    ((value,),) = db.execute("SELECT value FROM meta WHERE key = 'salt'").fetchall()
    return bytes.fromhex(value)


def figures(db: sqlite3.Connection, path: Path) -> Figures:
    """The figures of this moment."""
    now, salt = datetime.now(UTC), stored_salt(db)
    (users,) = db.execute("SELECT count(*) FROM users").fetchone()
    messages, last = db.execute("SELECT coalesce(sum(messages), 0), max(created_at) FROM requests").fetchone()
    (chunks,) = db.execute("SELECT count(*) FROM chunks").fetchone()
    latest = db.execute(
        "SELECT user_id, max(created_at) AS at FROM requests GROUP BY user_id ORDER BY at DESC LIMIT ?", (LATEST,)
    )
    since = "SELECT count(*) FROM requests WHERE created_at > ?"
    return Figures(
        users=users,
        messages=messages,
        chunks=chunks,
        file_bytes=sum(file.stat().st_size for file in path.parent.glob(path.name + "*")),
        adds={minutes: db.execute(since, (instant(now - timedelta(minutes=minutes)),)).fetchone()[0] for minutes in MINUTES},
        last_add=last,
        latest=[{"user": user_hash(user_id, salt), "at": at} for user_id, at in latest],
        journal=journal(db, LATEST),
    )


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """A file for its owner alone; gone again if the block fails. Raises ``ConfigError`` if there is one, or can't be one."""
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except OSError as error:
        raise ConfigError(f"{path} can't be made ({error.strerror}): name a new file in a folder that can be written") from error
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(handle)
    except BaseException:
        path.unlink()
        raise


def backup(db: sqlite3.Connection, target: Path) -> int:
    """Copy the database as of one moment into a new file and check the copy; its bytes.

    Raises ``ConfigError`` if the file is there already, ``StoreError`` if it can't be written or the copy is damaged.
    """
    with new_file(target), store_errors(), closing(sqlite3.connect(target, isolation_level=None)) as copy:
        db.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE").fetchall()  # one file, without a log beside it
        if copy.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
            raise sqlite3.DatabaseError("the copy is damaged")
    return target.stat().st_size


def _connected(path: Path, mode: str) -> sqlite3.Connection:
    uri = f"{path.resolve().as_uri()}?mode={mode}"
    db = sqlite3.connect(uri, timeout=WRITE_SECONDS, isolation_level=None, uri=True)
    db.execute("PRAGMA secure_delete = ON")
    return db
