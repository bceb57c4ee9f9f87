"""The commands as one types them, while a server runs and without one."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from conftest import Serve
from typer.testing import CliRunner, Result
from upkeep_helpers import add, days_ago, engine, files, found

from memserver import freeze
from memserver.__main__ import cli


@pytest.fixture(autouse=True)
def _hashing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSERVER_EMBEDDER", "hashing")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A database of two users, one with an old Add."""
    with engine(tmp_path) as made:
        made.add(add("ann", "r1", "red pears", "green pears"), days_ago(40))
        made.add(add("ann", "r2", "blue pears"), days_ago(1))
        made.add(add("bob", "r1", "plums"), days_ago(1))
    return tmp_path


def run(*command: str, data: Path) -> Result:
    return CliRunner().invoke(cli, [*command, "--data-dir", str(data)])


def left(data: Path, user: str = "ann") -> list[str]:
    with engine(data) as made:
        return found(made, user, "red green blue pears plums")


# --- purge ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "counts"),
    [
        (["--user", "ann"], "3 messages in 2 Adds of 1 users"),
        (["--user", "nobody"], "0 messages in 0 Adds of 0 users"),
        (["--older-than", "30d"], "2 messages in 1 Adds of 1 users"),
        (["--older-than", "12h"], "4 messages in 3 Adds of 2 users"),
        (["--all"], "4 messages in 3 Adds of 2 users"),
    ],
)
def test_purge_says_what_would_go_and_deletes_it_only_with_yes(data: Path, what: list[str], counts: str) -> None:
    before = left(data)
    assert run("purge", *what, data=data).output == f"would delete {counts}; nothing was deleted, --yes does it\n"
    assert left(data) == before
    assert run("purge", *what, "--yes", data=data).output == f"deleted {counts}\n"
    assert run("purge", *what, data=data).output.startswith("would delete 0 messages in 0 Adds of 0 users")


def test_purge_leaves_what_was_not_meant_and_no_trace_of_what_was(data: Path) -> None:
    assert run("purge", "--older-than", "30d", "--yes", data=data).exit_code == 0
    assert (left(data), left(data, "bob")) == (["user: blue pears"], ["user: plums"])
    assert b"green pears" not in files(data)


def test_purge_leaves_the_file_alone_while_adds_come_in(data: Path) -> None:
    with engine(data) as made:
        made.add(add("bob", "r2", "just now"))
    assert "Adds come in" in run("purge", "--user", "ann", "--yes", data=data).output
    assert left(data) == []


@pytest.mark.parametrize("what", [[], ["--all", "--user", "ann"], ["--older-than", "month"], ["--older-than", "-1d"]])
def test_purge_wants_one_clear_order(data: Path, what: list[str]) -> None:
    done = run("purge", *what, "--yes", data=data)
    assert done.exit_code == 2
    assert left(data, "bob") == ["user: plums"]


def test_purge_works_while_a_server_runs_that_has_the_user_in_memory(data: Path, serve: Serve) -> None:
    url = serve(DATA_DIR=str(data))
    search = {"user_id": "ann", "query": "pears"}
    assert len(httpx.post(f"{url}/search", json=search).json()["data"]) == 3
    assert run("purge", "--older-than", "30d", "--yes", data=data).exit_code == 0
    (hit,) = httpx.post(f"{url}/search", json=search).json()["data"]
    assert hit["content"] == "user: blue pears"
    assert httpx.delete(f"{url}/users/ann").json() == {"deleted": 1, "wiped": True}
    assert httpx.post(f"{url}/search", json=search).json() == {"data": []}


# --- export, import ---------------------------------------------------------------------------------------------------


def test_what_is_exported_is_imported_elsewhere(data: Path, tmp_path: Path) -> None:
    file, copy = tmp_path / "ann.jsonl", tmp_path / "copy"
    assert run("export", "--user", "ann", "--to", str(file), data=data).exit_code == 0
    assert run("export", "--user", "ann", data=data).stdout_bytes == file.read_bytes()
    assert run("import", str(file), data=copy).output == "imported 2 Adds, 0 were there before\n"
    assert run("import", str(file), data=copy).output == "imported 0 Adds, 2 were there before\n"
    assert (left(copy), left(copy, "bob")) == (left(data), [])
    assert run("export", "--all-users", data=copy).stdout_bytes == file.read_bytes()


def test_export_of_all_users_has_every_add(data: Path) -> None:
    lines = run("export", "--all-users", data=data).stdout.splitlines()
    requests = [json.loads(line)["request"] for line in lines]
    assert [(one["user_id"], one["request_id"]) for one in requests] == [("ann", "r1"), ("ann", "r2"), ("bob", "r1")]


def test_export_overwrites_nothing_and_wants_to_know_whom(data: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    assert run("export", "--user", "ann", "--to", str(tmp_path / "file"), data=data).exit_code == 2
    assert (tmp_path / "file").read_text() == "precious"
    assert run("export", data=data).exit_code == run("export", "--all-users", "--user", "ann", data=data).exit_code == 2


def test_import_names_the_line_that_it_cant_store_and_not_what_it_says(data: Path, tmp_path: Path) -> None:
    line = run("export", "--user", "bob", data=data).stdout.strip()
    (tmp_path / "file").write_text(f"{line}\n{line.replace('digest of r1', 'another')}\n")
    done = run("import", str(tmp_path / "file"), data=tmp_path / "copy")
    assert (done.exit_code, done.output.startswith("line 2: "), "plums" in done.output) == (2, True, False)
    (tmp_path / "file").write_text("plums\n")
    done = run("import", str(tmp_path / "file"), data=tmp_path / "copy")
    assert (done.exit_code, done.output.startswith("line 1: "), "plums" in done.output) == (2, True, False)


# --- backup, stats ----------------------------------------------------------------------------------------------------


def test_backup_copies_into_a_new_file(data: Path, tmp_path: Path) -> None:
    assert "the copy is sound" in run("backup", str(tmp_path / "copy.db"), data=data).output
    assert run("backup", str(tmp_path / "copy.db"), data=data).exit_code == 2


def test_the_first_line_of_stats_says_whether_adds_come_in(data: Path) -> None:
    assert run("stats", data=data).output.startswith("quiet: Adds 0 in 1 min, 0 in 5 min, 0 in 60 min; the last one ")
    with engine(data) as made:
        made.add(add("bob", "r2", "just now"))
    lines = run("stats", data=data).output.splitlines()
    assert lines[0].startswith("LIVE: Adds 1 in 1 min, 1 in 5 min, 1 in 60 min; the last one ")
    assert lines[1].startswith("2 users, 5 messages, 5 chunks, ")
    assert len(lines[2:]) == 2


def test_stats_as_json_have_the_deletions(data: Path) -> None:
    run("purge", "--user", "ann", "--yes", data=data)
    seen = json.loads(run("stats", "--json", data=data).output)
    assert [(entry["reason"], entry["adds"], entry["messages"]) for entry in seen["journal"]] == [("user", 2, 3)]
    assert not {"ann", "bob"} & set(json.dumps(seen).replace('"', " ").split())


@pytest.mark.parametrize("command", [["stats"], ["purge", "--all", "--yes"], ["backup", "copy"], ["export", "--all-users"]])
def test_no_command_but_import_makes_a_database(tmp_path: Path, command: list[str]) -> None:
    done = run(*command, data=tmp_path / "none")
    assert (done.exit_code, "there is no database" in done.output) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_a_database_that_fails_is_an_exit_with_1(data: Path) -> None:
    with closing(sqlite3.connect(data / "memserver.db", isolation_level=None)) as db:
        db.execute("DROP TABLE chunks")
    assert run("stats", data=data).exit_code == 1


# --- freeze -----------------------------------------------------------------------------------------------------------


def test_freeze_writes_both_files_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(freeze, "commit", lambda _: "c0ffee")
    assert CliRunner().invoke(cli, ["freeze", "--label", "run-1"]).output == "written: FROZEN.json, FROZEN.md\n"
    assert json.loads((tmp_path / "FROZEN.json").read_text())["label"] == "run-1"
    assert CliRunner().invoke(cli, ["freeze", "--label", "run-2"]).exit_code == 2
