"""Deleting so that nothing stays but a line in the journal, which has counts and no content.

Old bytes go in three steps: SQLite overwrites the rows, ``wipe_log`` empties the write-ahead log, and ``rebuild`` writes the
file anew, for rows that SQLite once moved from page to page can have left copies behind that no other step reaches.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from memserver.ids import user_hash

USER_TABLES = ("messages", "postings", "chunks", "images", "requests", "users")
TURN_SECONDS = 0.2  # that a try to empty the log may wait for a reader: writers wait meanwhile
PAUSE_SECONDS = 0.1  # between two tries
WRITE_SECONDS = 30.0  # that a command or a rebuild waits for a server's write, as servers do for each other's
QUIET = timedelta(hours=1)  # without an Add: writers wait while the file is rebuilt
ROUND = timedelta(minutes=59)  # the server's processes all come by once an hour; one of them does the work

Reason = Literal["user", "older-than", "all", "retention"]


@dataclass(frozen=True, slots=True)
class Counts:
    """What goes or went of one user."""

    adds: int
    messages: int


def instant(moment: datetime) -> str:
    """A time as the tables have it: UTC, milliseconds, ordered as text."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")


def due(db: sqlite3.Connection, before: datetime | None = None, user_id: str | None = None) -> dict[str, Counts]:
    """What was received before a time (None: ever) of each user, or of one."""
    limits = {"user_id = ?": user_id, "created_at < ?": before and instant(before)}
    given = {condition: value for condition, value in limits.items() if value is not None}
    where = f" WHERE {' AND '.join(given)}" if given else ""
    rows = db.execute(f"SELECT user_id, count(*), sum(messages) FROM requests{where} GROUP BY user_id", tuple(given.values()))
    return {user: Counts(adds, messages) for user, adds, messages in rows}


def erase(db: sqlite3.Connection, salt: bytes, user_id: str, reason: Reason, before: datetime | None = None) -> Counts:
    """Delete what a user sent before a time, or all; within a transaction of the caller. The user goes with the last Add.

    Sequence numbers have gaps then, and are not given out again; the new epoch makes every process read the user anew.
    """
    nothing = Counts(0, 0)
    gone, there = (due(db, limit, user_id).get(user_id, nothing) for limit in (before, None))
    if gone == there:
        for table in USER_TABLES:
            db.execute(f"DELETE FROM {table} WHERE user_id = ?", (user_id,))
    elif before and gone != nothing:
        _erase_before(db, user_id, instant(before))
    if gone != nothing:
        db.execute(
            "INSERT INTO journal (at, reason, user, adds, messages) VALUES (?, ?, ?, ?, ?)",
            (instant(datetime.now(UTC)), reason, user_hash(user_id, salt), gone.adds, gone.messages),
        )
    return gone


def _erase_before(db: sqlite3.Connection, user_id: str, before: str) -> None:
    old = "user_id = ?1 AND created_at < ?2"
    for table in ("postings", "chunks"):
        db.execute(f"DELETE FROM {table} WHERE user_id = ?1 AND seq IN (SELECT seq FROM messages WHERE {old})", (user_id, before))
    for table in ("messages", "requests"):
        db.execute(f"DELETE FROM {table} WHERE {old}", (user_id, before))
    db.execute(
        "DELETE FROM images WHERE user_id = ?1 AND digest NOT IN (SELECT part.value ->> 'image'"
        " FROM messages JOIN json_each(messages.parts) AS part WHERE user_id = ?1 AND part.value ->> 'image' IS NOT NULL)",
        (user_id,),
    )
    db.execute("UPDATE users SET epoch = ?2 WHERE user_id = ?1", (user_id, secrets.randbits(63)))


def claim(db: sqlite3.Connection) -> bool:
    """Take this hour's round of upkeep; False if another process has it. Within a transaction of the caller."""
    now = datetime.now(UTC)
    took = db.execute(
        "INSERT INTO meta (key, value) VALUES ('round', ?1)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value WHERE value < ?2",
        (instant(now), instant(now - ROUND)),
    )
    return took.rowcount == 1


def wipe_log(path: Path, patience: float) -> bool:
    """Empty the write-ahead log, where deleted rows still stand; False if readers kept it busy for ``patience`` seconds."""
    deadline = time.monotonic() + patience
    with closing(sqlite3.connect(path, timeout=TURN_SECONDS, isolation_level=None)) as db:
        while True:
            ((busy, _, _),) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            if not busy:
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(PAUSE_SECONDS)


def quiet(db: sqlite3.Connection) -> bool:
    """Whether no Add has come for a while."""
    (last,) = db.execute("SELECT max(created_at) FROM requests").fetchone()
    return last is None or str(last) < instant(datetime.now(UTC) - QUIET)


def rebuild_due(db: sqlite3.Connection) -> bool:
    """Whether something was deleted since the file was last rebuilt."""
    rebuilt = db.execute("SELECT value FROM meta WHERE key = 'rebuilt'").fetchone()
    return _deletions(db) > (int(rebuilt[0]) if rebuilt else 0)


def rebuild(path: Path) -> None:
    """Write the file anew; it takes up to twice its room for the time. Readers go on, writers wait."""
    os.environ.setdefault("SQLITE_TMPDIR", str(path.parent.resolve()))  # memories stay on the disk that is meant for them
    with closing(sqlite3.connect(path, timeout=WRITE_SECONDS, isolation_level=None)) as db:
        deletions = _deletions(db)
        db.execute("VACUUM")
        db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('rebuilt', ?)", (str(deletions),))


def _deletions(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT coalesce(max(number), 0) FROM journal").fetchone()[0])


def journal(db: sqlite3.Connection, last: int) -> list[Mapping[str, object]]:
    """The last deletions, the latest first: ``at``, ``reason``, ``user`` (hashed), ``adds``, ``messages``."""
    columns = ("at", "reason", "user", "adds", "messages")
    rows = db.execute(f"SELECT {', '.join(columns)} FROM journal ORDER BY number DESC LIMIT ?", (last,))
    return [dict(zip(columns, row, strict=True)) for row in rows]
