"""Adds out of a database and into another: nothing is lost on the way."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from upkeep_helpers import add, days_ago, engine, found, picture

from memserver import archive
from memserver.errors import BadRequest
from memserver.types import AddRequest, Image, Message, Part
from memserver.upkeep import opened

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
IMAGES = st.builds(lambda data: Image(f"digest of {data.hex()}", "image/png", data), st.binary(max_size=9))
PARTS = st.lists(TEXT.filter(str) | IMAGES, min_size=1, max_size=3).map(tuple)


def message(role: str, text: str, timestamp: int | None, parts: tuple[Part, ...]) -> Message:
    shown = "\n".join(part for part in parts if isinstance(part, str))
    return (
        Message(role, shown, timestamp, parts)
        if any(isinstance(part, Image) for part in parts)
        else Message(role, text, timestamp)
    )


MESSAGES = st.builds(message, TEXT.filter(str), TEXT, st.none() | st.integers(-(10**13), 10**14), PARTS)
ADDS = st.lists(
    st.builds(
        AddRequest,
        request_id=TEXT.filter(str),
        user_id=st.sampled_from(["ann", "bob/é"]),
        session_id=TEXT,
        messages=st.lists(MESSAGES, max_size=3).map(tuple),
        digest=st.text("0123456789abcdef", min_size=64, max_size=64),
    ),
    max_size=6,
    unique_by=lambda request: (request.user_id, request.request_id),
)
TIMES = st.datetimes(datetime(1970, 1, 1), timezones=st.just(UTC))


def exported(data: Path) -> list[bytes]:
    with opened(data / "memserver.db", "ro") as db:
        return [archive.dump(one) for user in archive.users(db) for one in archive.adds(db, user)]


def imported(data: Path, lines: list[bytes]) -> list[bool]:
    with engine(data) as made:
        loaded = [archive.load(line) for line in lines]
        return [made.add(one.request, one.received) for one in loaded]


@settings(max_examples=30)
@given(ADDS, st.lists(TIMES, min_size=6, max_size=6))
def test_exported_imported_and_exported_again_is_the_same(adds: list[AddRequest], times: list[datetime]) -> None:
    with TemporaryDirectory() as first, TemporaryDirectory() as second:
        with engine(Path(first)) as made:
            for request, time in zip(adds, times, strict=False):
                made.add(request, time)
        lines = exported(Path(first))
        received = [archive.load(line) for line in lines]
        assert len(lines) == len(adds)
        assert {one.request.request_id + one.request.user_id: one.request for one in received} == {
            request.request_id + request.user_id: request for request in adds
        }
        assert all(imported(Path(second), lines))
        assert exported(Path(second)) == lines


def test_a_line_has_what_was_received_and_is_one_line(tmp_path: Path) -> None:
    with engine(tmp_path) as made:
        made.add(AddRequest("r", "ann", "s", (Message("user", "a\nb\u2028", 5), picture("c", b"\xff\xd8")), "d"), days_ago(1))
    (line,) = exported(tmp_path)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert json.loads(line)["request"] == {
        "request_id": "r", "user_id": "ann", "session_id": "s", "digest": "d",
        "messages": [
            {"role": "user", "text": "a\nb\u2028", "timestamp": 5},
            {"role": "user", "text": "c", "parts": ["c", {"digest": "digest of 2", "mime": "image/png", "data": "_9g="}]},
        ],
    }  # fmt: skip
    assert abs(archive.load(line).received - days_ago(1)).total_seconds() < 0.001


def test_what_is_imported_is_found_under_the_same_ids_and_known_as_a_replay(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with engine(tmp_path / "a") as made:
        made.add(add("ann", "r1", "red pears", "green pears"))
        before = found(made, "ann", "pears")
    lines = exported(tmp_path / "a")
    assert imported(tmp_path / "b", lines) == [True]
    assert imported(tmp_path / "b", lines) == [False]
    with engine(tmp_path / "b") as made:
        assert found(made, "ann", "pears") == before
        assert made.add(add("ann", "r1", "red pears", "green pears")) is False


def test_adds_stand_in_the_order_stored_and_those_without_messages_last(tmp_path: Path) -> None:
    with engine(tmp_path) as made:
        for request, texts, days in (("z", ["1"], 1), ("empty", [], 9), ("a", ["2"], 5)):
            made.add(add("ann", request, *texts), days_ago(days))
    assert [archive.load(line).request.request_id for line in exported(tmp_path)] == ["z", "a", "empty"]


@pytest.mark.parametrize("line", [b"", b"{}", b"secret", b'{"received": "secret", "request": {"user_id": 3}}'])
def test_another_line_is_refused_without_repeating_it(line: bytes) -> None:
    with pytest.raises(BadRequest, match="is not as `memserver export` writes it") as refused:
        archive.load(line)
    assert "secret" not in str(refused.value)
