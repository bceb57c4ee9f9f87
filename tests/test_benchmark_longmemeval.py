from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from benchmark.longmemeval import app

TINY = Path(__file__).parent / "longmemeval_tiny.json"
MODES = {
    "bm25": ["--mode", "bm25"],
    "vector": ["--mode", "vector", "--set", "embedder=hashing"],
    "hybrid": ["--set", "embedder=hashing"],
}


def bench(cache: Path, *arguments: str, data: Path = TINY) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of the command."""
    result = CliRunner().invoke(app, ["--data", str(data), "--cache", str(cache), *arguments])
    return result.exit_code, result.stdout, result.stderr


def report(cache: Path, *arguments: str, data: Path = TINY) -> dict[str, Any]:
    """The JSON object of the last line of stdout."""
    code, stdout, stderr = bench(cache, "--json", *arguments, data=data)
    assert code == 0, stderr
    found: dict[str, Any] = json.loads(stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_finds_the_sessions_of_the_tiny_set(tmp_path: Path, mode: str) -> None:
    found = report(tmp_path, *MODES[mode])
    assert {name: found[name] for name in ("n", "recall_any@5", "recall_any@10", "recall_all@5")} == {
        "n": 2,
        "recall_any@5": 1,
        "recall_any@10": 1,
        "recall_all@5": 1,
    }
    assert found["all"]["n"] == 3
    assert {name: means["n"] for name, means in found["types"].items()} == {"multi-session": 1, "single-session-user": 1}
    assert found["run"]["mode"] == mode


@pytest.mark.parametrize("mode", MODES)
def test_renaming_the_sessions_of_the_data_set_changes_no_figure(tmp_path: Path, mode: str) -> None:
    text = TINY.read_text().replace('"chat_', '"aa_')
    for gold in ("bread", "lisbon", "porto", "piano_abs"):
        text = text.replace(f'"answer_{gold}"', f'"zz_{gold}"')
    renamed = tmp_path / "renamed.json"
    renamed.write_text(text)
    assert report(tmp_path, *MODES[mode], data=renamed) == report(tmp_path, *MODES[mode])


@pytest.mark.parametrize("mode", MODES)
def test_concurrency_and_a_warm_cache_change_no_figure(tmp_path: Path, mode: str) -> None:
    serial = report(tmp_path, *MODES[mode], "--concurrency", "1")
    assert report(tmp_path, *MODES[mode], "--concurrency", "3") == serial


def test_the_table_goes_to_stdout_and_progress_to_stderr(tmp_path: Path) -> None:
    code, stdout, stderr = bench(tmp_path, "--mode", "bm25")
    assert code == 0
    assert [line.split()[0] for line in stdout.splitlines()] == ["n", "without", "with", "multi-session", "single-session-user"]
    assert [line.split(",")[0] for line in stderr.splitlines()] == ["1/3 cases", "2/3 cases", "3/3 cases"]


def test_a_limit_plays_the_first_cases_only(tmp_path: Path) -> None:
    assert report(tmp_path, "--mode", "bm25", "--limit", "1")["all"]["n"] == 1


def test_a_peer_is_compared_on_the_questions_both_have(tmp_path: Path) -> None:
    peer = tmp_path / "peer.json"
    rows = [{"question_id": "q_sourdough", "retrieved_session_ids": ["chat_1", "answer_bread"]}]
    peer.write_text(json.dumps({"per_question": rows}))
    assert report(tmp_path, "--mode", "bm25", "--compare", str(peer))["compare"] == {"wins": 1, "ties": 0, "losses": 0}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--compare", "nowhere.json"], "nowhere.json: can't be read"),
        (["--set", "result_chars"], "--set wants KEY=VALUE"),
        (["--set", "no_such_setting=1"], "MEMSERVER_NO_SUCH_SETTING"),
        (["--url", "http://127.0.0.1:1", "--mode", "bm25"], "a running server (--url) has its own settings"),
    ],
)
def test_what_cannot_be_run_is_said_with_exit_code_two(tmp_path: Path, arguments: list[str], message: str) -> None:
    code, stdout, stderr = bench(tmp_path, *arguments)
    assert (code, stdout) == (2, "")
    assert message in stderr


def test_a_missing_data_file_is_said_with_exit_code_two_by_the_command_itself() -> None:
    command = [sys.executable, "-m", "benchmark.longmemeval", "--data", "nowhere.json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=TINY.parents[1])
    assert (done.returncode, done.stdout) == (2, "")
    assert "nowhere.json: can't be read" in done.stderr
