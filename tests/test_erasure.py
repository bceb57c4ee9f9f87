"""Deleting users and old Adds: what goes, what stays findable, what is left in the files."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from upkeep_helpers import NOW, add, days_ago, engine, files, found, picture

from memserver.engine import Engine
from memserver.erasure import USER_TABLES, Counts, claim, due, erase, instant, journal, rebuild_due, wipe_log
from memserver.ids import user_hash
from memserver.migrations import transaction
from memserver.types import Image, Message

SENTINEL = "xq7sentinel"


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Engine]:
    with engine(tmp_path) as made:
        yield made


@pytest.fixture
def db(opened: Engine, tmp_path: Path) -> Iterator[sqlite3.Connection]:  # noqa: ARG001 - it makes the file
    with closing(sqlite3.connect(tmp_path / "memserver.db", isolation_level=None)) as connection:
        yield connection


def count(db: sqlite3.Connection, table: str, user: str) -> int:
    return int(db.execute(f"SELECT count(*) FROM {table} WHERE user_id = ?", (user,)).fetchone()[0])


def purge(db: sqlite3.Connection, opened: Engine, user: str, days: float) -> Counts:
    with transaction(db, "IMMEDIATE"):
        return erase(db, opened.salt, user, "older-than", days_ago(days))


def make_quiet(db: sqlite3.Connection) -> None:
    db.execute("UPDATE requests SET created_at = min(created_at, ?)", (instant(days_ago(1)),))


# --- what is due ------------------------------------------------------------------------------------------------------


def test_due_are_the_adds_received_before_a_time_by_user(opened: Engine, db: sqlite3.Connection) -> None:
    opened.add(add("ann", "old", "one", "two"), days_ago(40))
    opened.add(add("ann", "new", "three"), days_ago(20))
    opened.add(add("bob", "old", "four"), days_ago(40))
    assert due(db) == {"ann": Counts(2, 2 + 1), "bob": Counts(1, 1)}
    assert due(db, days_ago(30)) == {"ann": Counts(1, 2), "bob": Counts(1, 1)}
    assert due(db, days_ago(30), "ann") == {"ann": Counts(1, 2)}
    assert due(db, days_ago(50)) == due(db, None, "nobody") == {}


# --- old Adds go, the others stay searchable --------------------------------------------------------------------------


def test_a_purge_of_old_adds_leaves_the_others_searchable_in_every_process(
    opened: Engine, db: sqlite3.Connection, tmp_path: Path
) -> None:
    for number, days in enumerate((5, 40, 4, 50, 3)):  # in the middle and between, so that gaps are in the sequence
        opened.add(add("ann", f"r{number}", f"pear {number}a", f"pear {number}b"), days_ago(days))
    with engine(tmp_path) as other:
        assert len(found(other, "ann", "pear")) == len(found(opened, "ann", "pear")) == 10
        assert purge(db, opened, "ann", 30) == Counts(2, 4)
        kept = [f"user: pear {number}{half}" for number in (0, 2, 4) for half in "ab"]
        for each in (opened, other):
            assert found(each, "ann", "pear") == kept
        other.add(add("ann", "r5", "pear 5a"))
        for each in (opened, other):
            assert found(each, "ann", "pear") == [*kept, "user: pear 5a"]


def test_after_a_purge_each_hit_is_the_message_that_was_ranked(opened: Engine, db: sqlite3.Connection) -> None:
    opened.add(add("ann", "r1", "apples", "pears"), days_ago(40))
    opened.add(add("ann", "r2", "plums", "figs"), days_ago(1))
    purge(db, opened, "ann", 30)
    for query in ("plums", "figs"):
        assert found(opened, "ann", query)[0 if query == "figs" else 1] == f"user: {query}"


def test_sequence_numbers_of_purged_messages_are_not_given_out_again(opened: Engine, db: sqlite3.Connection) -> None:
    opened.add(add("ann", "r1", "one"), days_ago(1))
    opened.add(add("ann", "r2", "two", "three"), days_ago(40))
    purge(db, opened, "ann", 30)
    opened.add(add("ann", "r3", "four"))
    assert [seq for (seq,) in db.execute("SELECT seq FROM messages ORDER BY seq")] == [1, 4]


def test_the_request_ids_of_purged_adds_are_free_again_and_those_of_others_are_not(
    opened: Engine, db: sqlite3.Connection
) -> None:
    opened.add(add("ann", "old", "one"), days_ago(40))
    opened.add(add("ann", "new", "two"), days_ago(1))
    purge(db, opened, "ann", 30)
    assert opened.add(add("ann", "old", "one")) is True
    assert opened.add(add("ann", "new", "two")) is False


def test_an_image_stays_while_a_message_that_stays_shows_it(opened: Engine, db: sqlite3.Connection) -> None:
    opened.add(add("ann", "old", picture("a", b"shared"), picture("b", b"of the old one")), days_ago(40))
    opened.add(add("ann", "new", picture("c", b"shared")), days_ago(1))
    purge(db, opened, "ann", 30)
    assert db.execute("SELECT data FROM images").fetchall() == [(b"shared",)]


def test_a_user_whose_adds_are_all_old_goes_altogether(opened: Engine, db: sqlite3.Connection) -> None:
    opened.add(add("ann", "r1", picture("a", b"png")), days_ago(40))
    assert purge(db, opened, "ann", 30) == Counts(1, 1)
    assert {table: count(db, table, "ann") for table in USER_TABLES} == dict.fromkeys(USER_TABLES, 0)


def test_nothing_old_means_nothing_done_and_nothing_noted(opened: Engine, db: sqlite3.Connection) -> None:
    opened.add(add("ann", "r1", "one"), days_ago(1))
    seen = db.execute("SELECT * FROM users").fetchall()
    assert purge(db, opened, "ann", 30) == purge(db, opened, "nobody", 30) == Counts(0, 0)
    assert db.execute("SELECT * FROM users").fetchall() == seen
    assert journal(db, 10) == []


# --- journal ----------------------------------------------------------------------------------------------------------


def test_the_journal_says_when_why_and_how_much_but_not_who_or_what(opened: Engine, db: sqlite3.Connection) -> None:
    opened.add(add("ann", "r1", "one", "two"), days_ago(40))
    opened.add(add("ann", "r2", "three"))
    purge(db, opened, "ann", 30)
    opened.delete_user("ann")
    user = user_hash("ann", opened.salt)
    (last, first) = journal(db, 10)
    assert first == {"at": first["at"], "reason": "older-than", "user": user, "adds": 1, "messages": 2}
    assert last == {"at": last["at"], "reason": "user", "user": user, "adds": 1, "messages": 1}
    assert instant(NOW) <= str(first["at"]) <= str(last["at"])
    assert journal(db, 1) == [last]


# --- retention --------------------------------------------------------------------------------------------------------


def test_of_several_processes_one_takes_the_round_of_an_hour(db: sqlite3.Connection) -> None:
    with transaction(db, "IMMEDIATE"):
        assert [claim(db) for _ in range(3)] == [True, False, False]
    db.execute("UPDATE meta SET value = ? WHERE key = 'round'", (instant(days_ago(1 / 24)),))
    with transaction(db, "IMMEDIATE"):
        assert [claim(db) for _ in range(3)] == [True, False, False]


@pytest.mark.parametrize(
    ("retention", "left"), [(0, ["user: new", "user: old"]), (30, ["user: new"]), (50, ["user: new", "user: old"])]
)
def test_the_hourly_round_deletes_what_is_older_than_the_retention(tmp_path: Path, retention: int, left: list[str]) -> None:
    with engine(tmp_path, retention_days=retention) as made, engine(tmp_path, retention_days=retention) as other:
        made.add(add("ann", "r1", "old"), days_ago(40))
        made.add(add("ann", "r2", "new"), days_ago(1))
        for each in (made, other):
            each.tidy()
        assert found(other, "ann", "old new") == left


# --- no byte is left --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("days", [None, 30])
def test_nothing_of_what_was_deleted_is_in_any_file_whatever_lies_around_it(
    opened: Engine, db: sqlite3.Connection, tmp_path: Path, days: float | None
) -> None:
    marked = SENTINEL + " " + "long " * 500
    for number in range(30):
        opened.add(add(f"u{number % 7}", f"r{number}", "pear " * number, "plum " * 700), days_ago(1))
        message = Message(
            "user", marked * (number % 3), 5, (marked, Image(SENTINEL + str(number), "image/png", SENTINEL.encode() * 900))
        )
        opened.add(add("u3", f"{SENTINEL}{number}", message, SENTINEL, session=SENTINEL), days_ago(40))
    assert SENTINEL.encode() in files(tmp_path)
    if days is None:
        opened.delete_user("u3")
    else:
        purge(db, opened, "u3", days)
    make_quiet(db)
    opened.tidy()
    assert SENTINEL.encode() not in files(tmp_path)
    assert len(found(opened, "u2", "pear")) > 0


def test_the_id_of_a_deleted_user_is_in_no_file(opened: Engine, tmp_path: Path) -> None:
    opened.add(add(SENTINEL, "r", "one"))
    opened.add(add("bob", "r", "one"))
    opened.delete_user(SENTINEL)
    assert SENTINEL.encode() not in files(tmp_path)


def test_a_log_that_a_reader_keeps_is_wiped_once_the_reader_is_gone(
    opened: Engine, db: sqlite3.Connection, tmp_path: Path
) -> None:
    path = tmp_path / "memserver.db"
    opened.add(add("ann", "r", SENTINEL))
    with transaction(db, "DEFERRED"):
        assert count(db, "messages", "ann") == 1
        with closing(sqlite3.connect(path, isolation_level=None)) as deleting, transaction(deleting, "IMMEDIATE"):
            erase(deleting, opened.salt, "ann", "user")
        assert not wipe_log(path, 0)
        assert SENTINEL.encode() in files(tmp_path)
    assert wipe_log(path, 0)
    assert SENTINEL.encode() not in files(tmp_path)


def test_the_file_is_rebuilt_once_after_deletions_and_only_where_no_adds_come(opened: Engine, db: sqlite3.Connection) -> None:
    def rebuilt() -> list[tuple[str]]:
        db.execute("DELETE FROM meta WHERE key = 'round'")
        opened.tidy()
        return db.execute("SELECT value FROM meta WHERE key = 'rebuilt'").fetchall()

    opened.add(add("ann", "r", "one"), days_ago(1))
    opened.add(add("bob", "r", "one"))
    assert rebuilt() == []
    opened.delete_user("ann")
    assert rebuilt() == []
    make_quiet(db)
    assert rebuilt() == [("1",)]
    opened.delete_user("bob")
    assert rebuilt() == [("2",)]
    assert not rebuild_due(db)


@given(st.datetimes(timezones=st.just(UTC)), st.datetimes(timezones=st.just(UTC)))
def test_instants_are_ordered_as_text(one: datetime, other: datetime) -> None:
    cut = [moment.replace(microsecond=moment.microsecond // 1000 * 1000) for moment in (one, other)]
    assert (instant(one) < instant(other)) is (cut[0] < cut[1])
