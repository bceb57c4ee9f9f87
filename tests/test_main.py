from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from conftest import Serve, memserver
from typer.testing import CliRunner

from memserver.__main__ import cli
from memserver.config import Settings
from memserver.methods import variables

ADD = {
    "request_id": "r1",
    "user_id": "alice",
    "session_id": "s1",
    "messages": [{"role": "user", "content": "I adopted a beagle called Waffles."}],
}
SEARCH = {"user_id": "alice", "query": "beagle"}


def test_settings_prints_every_variable_with_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSERVER_PORT", "9000")
    lines = CliRunner().invoke(cli, ["settings"]).output.splitlines()
    assert [line.split()[0] for line in lines] == ["NAME", *(variable.name for variable in variables(Settings()))]
    assert next(line.split()[1:3] for line in lines if line.startswith("MEMSERVER_PORT")) == ["9000", "8000"]


def test_settings_as_json_are_the_same_rows() -> None:
    rows = json.loads(CliRunner().invoke(cli, ["settings", "--json"]).output)
    assert {"name": "MEMSERVER_PORT", "value": "8000", "default": "8000", "meaning": "TCP port, 0 for any free one"} in rows
    assert len(rows) == len(variables(Settings()))


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_settings_hide_keys(flags: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSERVER_API_KEYS", "swordfish, opensesame")
    output = CliRunner().invoke(cli, ["settings", *flags]).output
    assert "(2 hidden)" in output
    assert "swordfish" not in output


def test_a_refused_start_says_one_line_a_problem_and_exits_with_2() -> None:
    process = memserver("serve", "--port", "65536", PROT="1", EMBEDDER="bert")
    output, _ = process.communicate()
    assert process.returncode == 2
    assert output.splitlines() == [
        "memserver does not start:",
        "MEMSERVER_PROT: no such setting; did you mean MEMSERVER_PORT?",
        "MEMSERVER_PORT: should be less than or equal to 65535",
        "MEMSERVER_EMBEDDER: embedder must be one of minilm, openai, hashing, none",
    ]


def test_a_server_stores_searches_and_keeps_over_a_restart(serve: Serve, tmp_path: Path) -> None:
    first = serve()
    assert httpx.get(f"{first}/health").json()["auth"] == "open"
    assert httpx.post(f"{first}/add", json=ADD).json()["success"] is True
    assert (tmp_path / "memserver.db").exists()
    second = serve()
    (hit,) = httpx.post(f"{second}/search", json=SEARCH).json()["data"]
    assert hit["content"] == "user: I adopted a beagle called Waffles."


def test_a_server_with_keys_wants_one(serve: Serve) -> None:
    url = serve(API_KEYS="swordfish, opensesame")
    assert httpx.get(f"{url}/health").json()["auth"] == "keys"
    assert httpx.post(f"{url}/search", json=SEARCH).status_code == 401
    assert httpx.post(f"{url}/search", json=SEARCH, headers={"X-Api-Key": "opensesame"}).json() == {"data": []}


def test_several_workers_serve_one_database(serve: Serve) -> None:
    url = serve(WORKERS="2")
    httpx.post(f"{url}/add", json=ADD).raise_for_status()
    for _ in range(8):  # a new connection each, so that both workers get some
        assert len(httpx.post(f"{url}/search", json=SEARCH).json()["data"]) == 1


def test_a_database_of_another_model_is_refused_before_workers_start(serve: Serve, tmp_path: Path) -> None:
    serve()
    process = memserver("serve", "--workers", "2", DATA_DIR=str(tmp_path), EMBEDDER="hashing", HASHING_DIMENSION="64")
    output, _ = process.communicate()
    assert process.returncode == 2
    assert output.startswith("memserver does not start:\n")
    assert "dimension" in output


def test_the_start_says_how_the_server_runs(tmp_path: Path) -> None:
    process = memserver("serve", "--port", "0", DATA_DIR=str(tmp_path), EMBEDDER="hashing", LOG_LEVEL="info")
    assert process.stdout is not None
    said, started = json.loads(process.stdout.readline()), json.loads(process.stdout.readline())
    process.terminate()
    process.communicate()
    assert said["embedder"] == "hashing (hashing, 256 dimensions)"
    assert "bm25/chunk=0.25" in said["legs"]
    assert said["data"] == str(tmp_path)
    assert "OPEN" in said["access"]
    assert started["logger"] == "uvicorn.error"
