"""What operators read and copy, while a server has the database open and after it ended."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from upkeep_helpers import add, days_ago, engine, found

from memserver.erasure import instant
from memserver.errors import ConfigError, StoreError
from memserver.ids import user_hash
from memserver.upkeep import LATEST, Figures, backup, figures, new_file, opened


def read(data: Path) -> Figures:
    path = data / "memserver.db"
    with opened(path, "ro") as db:
        return figures(db, path)


def test_figures_count_what_is_there_and_what_came_in_the_last_minutes(tmp_path: Path) -> None:
    ago = [datetime.now(UTC) - timedelta(minutes=minutes) for minutes in (90, 30, 3)]
    with engine(tmp_path) as made:
        made.add(add("ann", "r1", "one", "two"), ago[0])
        made.add(add("ann", "r2", "three"), ago[1])
        made.add(add("bob", "r1", "four"), ago[2])
        while_open = read(tmp_path)
        hashes = [user_hash(user, made.salt) for user in ("bob", "ann")]
    for seen in (while_open, read(tmp_path)):
        assert (seen.users, seen.messages, seen.chunks) == (2, 2 + 1 + 1, 4)
        assert seen.adds == {1: 0, 5: 1, 60: 2}
        assert [write["user"] for write in seen.latest] == hashes
        assert seen.last_add == instant(ago[2]) == seen.latest[0]["at"]
        assert seen.journal == []
        assert seen.file_bytes > 0


def test_figures_list_the_latest_users_and_the_last_deletions_without_their_ids(tmp_path: Path) -> None:
    with engine(tmp_path) as made:
        for number in range(LATEST + 1):
            made.add(add(f"user {number}", "r", "one"), days_ago(number + 1))
        made.delete_user("user 0")
        salt = made.salt
    seen = read(tmp_path)
    assert [write["user"] for write in seen.latest] == [user_hash(f"user {number}", salt) for number in range(1, LATEST + 1)]
    assert [(entry["reason"], entry["user"], entry["messages"]) for entry in seen.journal] == [
        ("user", user_hash("user 0", salt), 1)
    ]


def test_an_empty_database_has_figures_too(tmp_path: Path) -> None:
    with engine(tmp_path):
        pass
    seen = read(tmp_path)
    assert (seen.users, seen.messages, seen.last_add, seen.latest) == (0, 0, None, [])


def test_where_no_database_is_none_is_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no database"), opened(tmp_path / "memserver.db", "rw"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_database_of_another_release_is_left_alone(tmp_path: Path) -> None:
    with engine(tmp_path):
        pass
    with closing(sqlite3.connect(tmp_path / "memserver.db", isolation_level=None)) as db:
        db.execute("UPDATE _sqlite_migrations SET name = 'm999_future' WHERE name = 'm003_journal'")
    with pytest.raises(ConfigError, match="another release"), opened(tmp_path / "memserver.db", "rw"):
        pass


def test_a_file_that_is_no_database_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "memserver.db").write_bytes(b"nothing of the kind" * 1000)
    with pytest.raises(StoreError, match="not an SQLite database"), opened(tmp_path / "memserver.db", "ro"):
        pass


def test_reading_writes_nothing(tmp_path: Path) -> None:
    with engine(tmp_path) as made:
        made.add(add("ann", "r", "one"))
    with opened(tmp_path / "memserver.db", "ro") as db, pytest.raises(sqlite3.OperationalError, match="readonly"):
        db.execute("DELETE FROM users")


# --- backup -----------------------------------------------------------------------------------------------------------


def test_a_backup_made_while_the_server_runs_is_one_file_that_serves(tmp_path: Path) -> None:
    target = tmp_path / "copy" / "memserver.db"
    target.parent.mkdir()
    with engine(tmp_path) as made:
        made.add(add("ann", "r1", "I adopted a beagle"))
        with opened(tmp_path / "memserver.db", "ro") as db:
            assert backup(db, target) == target.stat().st_size
        made.add(add("ann", "r2", "a beagle came later"))
    assert list(target.parent.iterdir()) == [target]
    assert target.stat().st_mode & 0o777 == 0o600
    with engine(target.parent) as copy:
        assert found(copy, "ann", "beagle") == ["user: I adopted a beagle"]


def test_a_backup_overwrites_nothing(tmp_path: Path) -> None:
    with engine(tmp_path):
        (tmp_path / "file").write_text("precious")
        with pytest.raises(ConfigError, match="name a new file"), opened(tmp_path / "memserver.db", "ro") as db:
            backup(db, tmp_path / "file")
    assert (tmp_path / "file").read_text() == "precious"


def test_a_copy_that_is_damaged_is_not_kept(tmp_path: Path) -> None:
    with engine(tmp_path):
        pass
    path = tmp_path / "memserver.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        (root,) = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'chunks_by_text'").fetchone()
        (page,) = db.execute("PRAGMA page_size").fetchone()
    content = bytearray(path.read_bytes())
    content[(root - 1) * page : root * page] = b"\xff" * page
    path.write_bytes(content)
    with pytest.raises(StoreError), opened(path, "ro") as db:
        backup(db, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_new_file_is_gone_again_if_its_block_fails(tmp_path: Path) -> None:
    with pytest.raises(TypeError), new_file(tmp_path / "file") as file:
        file.writelines([b"half", "no bytes"])  # type: ignore[list-item]
    assert list(tmp_path.iterdir()) == []
