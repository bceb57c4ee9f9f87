from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from benchmark.client import Mode, in_process
from benchmark.data import load_cases
from benchmark.errors import BenchError
from benchmark.longmemeval import app, outcome_of, run, select
from benchmark.results import load
from benchmark.state import State
from memserver.types import Hit

TINY = Path(__file__).parent / "longmemeval_tiny.json"
MODES = {
    "bm25": ["--mode", "bm25"],
    "vector": ["--mode", "vector", "--set", "embedder=hashing"],
    "hybrid": ["--set", "embedder=hashing"],
}


def bench(folder: Path, *arguments: str, data: Path = TINY) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of the command; its result file is saved in ``folder``."""
    folders = ["--cache", str(folder / "cache"), "--save", str(folder / "results")]
    result = CliRunner().invoke(app, ["--data", str(data), *folders, *arguments])
    return result.exit_code, result.stdout, result.stderr


def report(folder: Path, *arguments: str, data: Path = TINY) -> dict[str, Any]:
    """The JSON object of the last line of stdout."""
    code, stdout, stderr = bench(folder, "--json", *arguments, data=data)
    assert code == 0, stderr
    found: dict[str, Any] = json.loads(stdout.splitlines()[-1])
    return found


def figures(folder: Path, *arguments: str, data: Path = TINY) -> dict[str, Any]:
    """What the command finds of the ranking, without what differs from run to run."""
    found = report(folder, "--no-save", *arguments, data=data)
    return {name: found[name] for name in ("n", "recall_any@5", "mrr", "summary", "intervals", "types")}


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_finds_the_sessions_of_the_tiny_set(tmp_path: Path, mode: str) -> None:
    found = report(tmp_path, *MODES[mode])
    assert {name: found[name] for name in ("n", "recall_any@5", "recall_any@10", "recall_all@5")} == {
        "n": 2,
        "recall_any@5": 1,
        "recall_any@10": 1,
        "recall_all@5": 1,
    }
    assert found["summary"]["all"]["n"] == 3
    assert {name: means["n"] for name, means in found["types"].items()} == {"multi-session": 1, "single-session-user": 1}
    assert found["manifest"]["mode"] == mode


@pytest.mark.parametrize("mode", MODES)
def test_renaming_the_sessions_of_the_data_set_changes_no_figure(tmp_path: Path, mode: str) -> None:
    before = figures(tmp_path, *MODES[mode])
    text = TINY.read_text().replace('"chat_', '"aa_')
    for gold in ("bread", "lisbon", "porto", "piano_abs"):
        text = text.replace(f'"answer_{gold}"', f'"zz_{gold}"')
    renamed = tmp_path / "renamed" / TINY.name
    renamed.parent.mkdir()
    renamed.write_text(text)
    assert figures(tmp_path, *MODES[mode], data=renamed) == before


@pytest.mark.parametrize("mode", MODES)
def test_concurrency_and_a_warm_cache_change_no_figure(tmp_path: Path, mode: str) -> None:
    serial = figures(tmp_path, *MODES[mode], "--concurrency", "1")
    assert figures(tmp_path, *MODES[mode], "--concurrency", "3") == serial


def test_the_table_goes_to_stdout_and_progress_to_stderr(tmp_path: Path) -> None:
    code, stdout, stderr = bench(tmp_path, "--mode", "bm25")
    assert code == 0
    names = [line.split()[0] for line in stdout.splitlines() if line]
    assert names == ["n", "scored", "95%", "all", "multi-session", "single-session-user", "add_ms", "search_ms", "saved"]
    assert [line.split(",")[0] for line in stderr.splitlines()] == ["1/3 cases", "2/3 cases", "3/3 cases"]


def test_turns_that_hold_the_answer_are_found_too(tmp_path: Path) -> None:
    scored = report(tmp_path, "--mode", "bm25")["summary"]["scored"]
    assert (scored["turn_recall@5"], scored["evidence@50000chars"]) == (1, 1)


def test_a_whole_run_is_saved_with_what_it_takes_to_believe_it(tmp_path: Path) -> None:
    saved = load(Path(report(tmp_path, "--mode", "bm25")["saved"]))
    assert saved.name.startswith("longmemeval-default-bm25-")
    assert saved.manifest["command"] == "python -m benchmark.longmemeval --data longmemeval_tiny.json --mode bm25"
    assert saved.manifest["settings"]["legs"] == "bm25/chunk=0.25, bm25/context=0.35, bm25/session=0.3"
    assert saved.manifest["data"]["questions"] == 3
    assert [saved.manifest[name] for name in ("concurrency", "resumed")] == [4, 0]
    adds = sum(len(case.sessions) for case in load_cases(TINY))
    assert (saved.performance["add_ms"]["n"], saved.performance["search_ms"]["n"]) == (adds, 3)
    assert [question["id"] for question in saved.questions] == ["q_sourdough", "q_museums", "q_piano_abs"]
    assert saved.questions[1]["gold"] == ["answer_lisbon", "answer_porto"]
    assert [question["scored"] for question in saved.questions] == [True, True, False]


@pytest.mark.parametrize("part", [["--limit", "1"], ["--types", "multi-session"]])
def test_a_part_of_the_questions_is_printed_and_never_saved(tmp_path: Path, part: list[str]) -> None:
    found = report(tmp_path, "--mode", "bm25", *part)
    assert (found["summary"]["all"]["n"], found["manifest"]["partial"], found["saved"]) == (1, True, None)
    assert not (tmp_path / "results").exists()


def test_a_run_need_not_be_saved(tmp_path: Path) -> None:
    assert report(tmp_path, "--mode", "bm25", "--no-save")["saved"] is None


def test_cases_are_chosen_by_type_and_then_by_number() -> None:
    cases = load_cases(TINY)
    assert [case.index for case in select(cases, 1, ["single-session-user"])] == [0]
    assert [case.index for case in select(cases, None, ["multi-session"])] == [1]
    assert select(cases, None, []) == cases


def test_the_seed_profile_plays_sessions_as_documents(tmp_path: Path) -> None:
    found = report(tmp_path, "--profile", "seed", "--mode", "bm25")
    assert found["recall_any@5"] == 1
    assert found["manifest"]["profile"] == "seed-bm25"
    assert "turn_recall@5" not in found["summary"]["scored"]


@pytest.mark.parametrize(("serving", "resumed"), [(False, 3), (True, 0)])
def test_a_run_says_what_it_knew_and_over_http_it_knows_nothing(
    tmp_path: Path, serve: Callable[..., str], monkeypatch: pytest.MonkeyPatch, serving: bool, resumed: int
) -> None:
    monkeypatch.setattr(State, "finish", lambda _: None)  # as if each run were interrupted at its very end
    arguments = ["--url", serve()] if serving else ["--set", "embedder=hashing"]
    first, second = (report(tmp_path, *arguments)["manifest"] for _ in range(2))
    assert (first["resumed"], second["resumed"]) == (0, resumed)
    assert (second["seconds"] is None) is bool(resumed)


def test_a_warm_cache_is_told(tmp_path: Path) -> None:
    cold, warm = (report(tmp_path, *MODES["hybrid"])["manifest"] for _ in range(2))
    assert (warm["cache_hits"], warm["cache_misses"]) == (cold["cache_hits"] + cold["cache_misses"], 0)
    assert cold["cache_misses"] > 0


def test_a_running_server_is_measured_with_its_own_settings(tmp_path: Path, serve: Callable[..., str]) -> None:
    url = serve(LEGS="bm25/chunk=1")
    found = report(tmp_path, "--via", "http", "--url", url)
    assert found["recall_any@5"] == 1
    assert {name: found["manifest"][name] for name in ("profile", "via", "mode", "embedder", "settings")} == {
        "profile": "server",
        "via": "http",
        "mode": "bm25",
        "embedder": "hashing",
        "settings": None,
    }
    assert found["manifest"]["commit"] is None
    assert found["manifest"]["product"]["legs"] == {"bm25/chunk": 1}
    assert found["saved"].endswith("longmemeval-server-http.json")


def test_a_peer_is_compared_on_the_questions_both_have(tmp_path: Path) -> None:
    peer = tmp_path / "peer.json"
    row = {"question_id": "q_sourdough", "question_type": "single-session-user", "gold_session_ids": ["answer_bread"]}
    peer.write_text(json.dumps({"mode": "bm25", "per_question": [row | {"retrieved_session_ids": ["chat_1", "answer_bread"]}]}))
    compared = report(tmp_path, "--mode", "bm25", "--compare", str(peer))["compare"]
    assert {name: compared[name] for name in ("n", "wins", "ties", "losses")} == {"n": 1, "wins": 1, "ties": 0, "losses": 0}


class Failing:
    """A memory that fails once it has answered ``after`` searches."""

    def __init__(self, after: int) -> None:
        self.left = after
        self.users: set[str] = set()

    def add(self, body: bytes) -> None:
        self.users.add(json.loads(body)["user_id"])

    def search(self, body: bytes) -> list[Hit]:
        if not self.left:
            raise BenchError("the machine went away")
        self.left -= 1
        return []

    def describe(self) -> Mapping[str, object]:
        return {}


def test_a_run_that_stopped_goes_on_with_what_is_missing(tmp_path: Path) -> None:
    cases = load_cases(TINY)
    shown: list[tuple[int, int]] = []
    with pytest.raises(BenchError, match="went away"):
        run(cases, Failing(after=2), 0, 1, lambda *_: None, state=State(tmp_path, {}))
    rest = Failing(after=1)
    outcomes = run(cases, rest, 0, 1, lambda *done: shown.append(done), state=State(tmp_path, {}))
    assert [outcome.id for outcome in outcomes] == [case.id for case in cases]
    assert len(rest.users) == 1
    assert shown == [(3, 3)]


@contextmanager
def bm25(folder: Path) -> Iterator[Any]:
    with in_process(Mode.BM25, {}, folder) as memory:
        yield memory


def test_marks_and_answers_change_no_ranking(tmp_path: Path) -> None:
    case = load_cases(TINY)[1]
    with bm25(tmp_path) as memory:
        before = outcome_of(case, memory)
    with bm25(tmp_path) as memory:
        after = outcome_of(replace(case, evidence=frozenset({(1, 0)}), answer="E-217", gold=frozenset({"chat_3"})), memory)
    assert (after.ranked, after.turns) == (before.ranked, before.turns)
    assert (before.containment, after.containment) == (0, 1)  # SECRET-ANSWER stands nowhere, the printer's error does


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--compare", "nowhere.json"], "nowhere.json: can't be read"),
        (["--set", "result_chars"], "--set wants KEY=VALUE"),
        (["--set", "no_such_setting=1"], "MEMSERVER_NO_SUCH_SETTING"),
        (["--url", "http://127.0.0.1:1", "--mode", "bm25"], "a running server (--url) has its own settings"),
        (["--via", "http"], "--via http and --url go together"),
        (["--url", "http://h:abc"], "--url http://h:abc: not an address"),
        (["--profile", "nothing"], "--profile nothing: there are default"),
        (["--types", "nothing"], "--types nothing: the file has multi-session, single-session-user"),
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
