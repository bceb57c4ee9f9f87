"""A user's Adds as lines of JSON, and back: what was received, no index and no vector."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from math import inf

from pydantic import AwareDatetime, ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from memserver.errors import BadRequest
from memserver.migrations import transaction
from memserver.preparing import hit_id
from memserver.store import load_parts
from memserver.types import AddRequest, Image, Message


@dataclass(frozen=True, config=ConfigDict(ser_json_bytes="base64", val_json_bytes="base64"))
class Archived:
    """An Add and when it was received. As a line of JSON it has the fields of ``types``; an image's bytes are base64."""

    received: AwareDatetime
    request: AddRequest


_LINE = TypeAdapter(Archived)


def dump(archived: Archived) -> bytes:
    """One line, with its line break."""
    return _LINE.dump_json(archived, exclude_defaults=True) + b"\n"


def load(line: bytes) -> Archived:
    """What ``dump`` wrote. Raises ``BadRequest``."""
    try:
        return _LINE.validate_json(line)
    except ValidationError as error:
        where = ".".join(map(str, error.errors(include_input=False)[0]["loc"])) or "the line"
        raise BadRequest(where, "is not as `memserver export` writes it") from None


def adds(db: sqlite3.Connection, user_id: str) -> Iterator[Archived]:
    """A user's Adds as of one moment, in the order stored; those without messages last."""
    with transaction(db, "DEFERRED"):
        seqs = dict(db.execute("SELECT id, seq FROM messages WHERE user_id = ?", (user_id,)).fetchall())
        requests = db.execute(
            "SELECT request_id, session_id, digest, messages, created_at FROM requests WHERE user_id = ?", (user_id,)
        ).fetchall()
        placed = [
            (seqs[hit_id(user_id, request_id, 0)] if count else inf, created_at, request_id, session_id, digest, count)
            for request_id, session_id, digest, count, created_at in requests
        ]
        for first, created_at, request_id, session_id, digest, count in sorted(placed):
            messages = tuple(_messages(db, user_id, int(first), count)) if count else ()
            yield Archived(created_at, AddRequest(request_id, user_id, session_id, messages, digest))


def users(db: sqlite3.Connection) -> Sequence[str]:
    """All users' ids."""
    return [user_id for (user_id,) in db.execute("SELECT user_id FROM users ORDER BY user_id").fetchall()]


def _messages(db: sqlite3.Connection, user_id: str, first: int, count: int) -> Iterator[Message]:
    rows = db.execute(
        "SELECT role, text, timestamp, parts FROM messages WHERE user_id = ? AND seq BETWEEN ? AND ? ORDER BY seq",
        (user_id, first, first + count - 1),
    )
    for role, text, timestamp, parts in rows.fetchall():
        listed = json.loads(parts) if parts else []
        digests = {part["image"] for part in listed if "image" in part}
        images = {digest: _image(db, user_id, digest) for digest in digests}
        yield Message(role, text, timestamp, load_parts(listed, images))


def _image(db: sqlite3.Connection, user_id: str, digest: str) -> Image:
    row = db.execute("SELECT digest, mime, data FROM images WHERE user_id = ? AND digest = ?", (user_id, digest)).fetchone()
    return Image(*row)
