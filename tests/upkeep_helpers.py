"""Engines over one data directory, and Adds for them with a time of arrival."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from memserver.engine import Engine
from memserver.methods import load_settings
from memserver.types import AddRequest, Image, Message, SearchRequest

NOW = datetime.now(UTC)


@contextmanager
def engine(data: Path, **settings: object) -> Iterator[Engine]:
    opened = Engine.open(load_settings({}, {"data_dir": str(data), "embedder": "hashing"} | settings))
    try:
        yield opened
    finally:
        opened.close()


def add(user: str, request: str, *messages: str | Message, session: str = "s") -> AddRequest:
    said = tuple(Message("user", message) if isinstance(message, str) else message for message in messages)
    return AddRequest(request, user, session, said, f"digest of {request}")


def picture(text: str, data: bytes) -> Message:
    return Message("user", text, None, (text, Image(f"digest of {len(data)}", "image/png", data)))


def days_ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def found(opened: Engine, user: str, query: str) -> list[str]:
    return sorted(str(hit.content) for hit in opened.search(SearchRequest(user, query, 100)))


def files(data: Path) -> bytes:
    return b"".join(file.read_bytes() for file in data.iterdir())
