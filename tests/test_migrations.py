"""A file made ready once by any number of processes, and refused where it is not ours to use."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from memserver import migrations
from memserver.errors import ConfigError
from memserver.migrations import MIGRATIONS, PAGE_BYTES
from memserver.store import SqliteStore
from memserver.types import Traits

STAMP = {"embedder": "hashing", "model": "hashing-4", "dimension": "4", "fingerprint": "f1", "analyzer": "porter"}
ROOT = Path(__file__).parents[1]

START = """
import sys
from pathlib import Path
from memserver.store import SqliteStore
print("ready", flush=True)
sys.stdin.readline()
store = SqliteStore(Path(sys.argv[1]), {"dimension": "4", "model": sys.argv[2]})
print(store.schema, flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "memories.db"


def run_sql(path: Path, sql: str) -> None:
    with sqlite3.connect(path) as db:
        db.execute(sql)
    db.close()


# --- starts that are refused ------------------------------------------------------------------------------------------


def test_migrations_are_numbered_in_order() -> None:
    numbers = [int(migration.__name__[1:4]) for migration in MIGRATIONS]
    assert numbers == list(range(1, len(MIGRATIONS) + 1))


def test_the_same_stamp_starts_again(path: Path) -> None:
    for _ in range(2):
        SqliteStore(path, STAMP).close()


def test_another_model_is_refused_with_both_values_and_what_to_do(path: Path) -> None:
    SqliteStore(path, STAMP).close()
    with pytest.raises(ConfigError) as refused:
        SqliteStore(path, {**STAMP, "model": "other-4", "fingerprint": "f2"})
    for word in ("model was 'hashing-4' and is now 'other-4'", "fingerprint was 'f1' and is now 'f2'", "another data directory"):
        assert word in str(refused.value)
    assert "analyzer" not in str(refused.value)
    SqliteStore(path, STAMP).close()


@pytest.mark.parametrize("content", [b"not a database at all " * 1000, b"SQLite format 3\0" + b"\xff" * 20_000])
def test_a_file_that_is_no_database_is_refused_and_left_alone(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="use another data directory"):
        SqliteStore(path, STAMP)
    assert path.read_bytes() == content


def test_a_damaged_database_is_refused(path: Path) -> None:
    SqliteStore(path, STAMP).close()
    content = bytearray(path.read_bytes())
    content[100:PAGE_BYTES] = b"\xff" * (PAGE_BYTES - 100)
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="damaged"):
        SqliteStore(path, STAMP)


def test_a_database_of_a_newer_release_is_refused(path: Path) -> None:
    SqliteStore(path, STAMP).close()
    run_sql(path, "UPDATE _sqlite_migrations SET name = 'm999_future' WHERE name = 'm001_memories'")
    with pytest.raises(ConfigError, match="newer memserver"):
        SqliteStore(path, STAMP)


def test_a_database_of_an_older_release_is_brought_up_to_date(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as older:
        older.setattr(migrations, "MIGRATIONS", MIGRATIONS[:1])
        SqliteStore(path, STAMP).close()
    with closing(sqlite3.connect(path)) as db:
        assert not migrations.complete(db)
        SqliteStore(path, STAMP).close()
        assert migrations.complete(db)


def test_a_folder_that_cant_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="data directory"):
        SqliteStore(tmp_path / "file" / "data" / "m.db", STAMP)


# --- processes that start together ------------------------------------------------------------------------------------


def python(script: str, *args: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", script, *args], cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def start_together(path: Path, models: Sequence[str]) -> list[str]:
    """What each of several processes says that open a new file at the same moment."""
    processes = [python(START, str(path), model) for model in models]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    return [out + error for out, error in (process.communicate() for process in processes)]


def test_4_processes_that_start_together_make_one_schema(path: Path) -> None:
    assert start_together(path, ["a"] * 4) == [f"{len(MIGRATIONS)}\n"] * 4


def test_of_processes_that_start_together_with_two_models_one_model_wins(path: Path) -> None:
    said = start_together(path, ["a", "b", "a", "b"])
    started = ["ConfigError" not in text for text in said]
    assert started in ([True, False] * 2, [False, True] * 2)


def test_messages_of_the_first_schema_are_kept_and_get_their_lengths(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as first:
        first.setattr("memserver.migrations.MIGRATIONS", MIGRATIONS[:1])
        SqliteStore(path, STAMP).close()
    run_sql(path, "INSERT INTO users VALUES ('u', 1, 7, '')")
    run_sql(path, "INSERT INTO messages VALUES ('u', 1, 'm1', 's', 'user', 5, '', 'hello', NULL)")
    run_sql(path, "INSERT INTO postings VALUES ('u', 1, 'hello', x'0100')")
    run_sql(path, "INSERT INTO chunks VALUES ('u', 1, 0, 0, 5, x'00', x'003c000000000000')")
    store = SqliteStore(path, STAMP)
    (row,) = store.read_since("u", None)[1]
    store.close()
    assert (row.id, row.timestamp, row.traits, row.vectors.tolist()) == ("m1", 5, Traits(5), [[1, 0, 0, 0]])
