from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from conftest import Serve
from typer.testing import CliRunner

from benchmark.compare import paired
from benchmark.errors import BenchError
from benchmark.locomo_data import Conversation
from benchmark.report import app as report_app
from benchmark.results import load
from benchmark.sets import COLUMNS, app, choose, run
from benchmark.sets_data import SETS, load_set
from benchmark.systems import ours
from memserver.types import Hit

TYPES = {
    "chinese": {"paraphrase", "synonym", "near-miss", "number", "multi", "update", "traditional"},
    "code": {"plain", "near-miss", "identifier", "path", "error-code", "config-key", "version"},
}
HASHING = ("--set", "embedder=hashing")
MESSAGE: dict[str, object] = {"id": 1, "session": 1, "time": "2024-01-01T00:00", "role": "user", "content": "a"}
QUESTION: dict[str, object] = {"id": "q", "type": "t", "question": "?", "evidence": [1]}


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in SETS[name].read_text("utf-8").splitlines()]


def messages(name: str) -> list[dict[str, Any]]:
    return [line for line in lines(name) if "content" in line]


def questions(name: str) -> list[dict[str, Any]]:
    return [line for line in lines(name) if "question" in line]


def bench(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of the command; its cache and its results stay in ``folder``."""
    found = CliRunner().invoke(app, ["--cache", str(folder / "cache"), "--save", str(folder / "results"), *arguments])
    return found.exit_code, found.stdout, found.stderr


def reports(folder: Path, *arguments: str) -> dict[str, dict[str, Any]]:
    """The JSON object of the last line of stdout: a report a set."""
    code, stdout, stderr = bench(folder, "--json", *arguments)
    assert code == 0, stderr
    found: dict[str, dict[str, Any]] = json.loads(stdout.splitlines()[-1])
    return found


def written(folder: Path, *rows: object) -> Path:
    path = folder / "tiny.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


# --- the files --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SETS)
def test_a_set_is_big_enough_to_be_hard(name: str) -> None:
    assert len(messages(name)) >= 240
    assert len(questions(name)) >= 40
    assert len({message["session"] for message in messages(name)}) >= 20


@pytest.mark.parametrize("name", SETS)
def test_messages_are_numbered_from_one_and_question_ids_are_unique(name: str) -> None:
    assert [message["id"] for message in messages(name)] == list(range(1, len(messages(name)) + 1))
    ids = [question["id"] for question in questions(name)]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", SETS)
def test_a_session_is_one_run_of_messages_of_one_time_and_sessions_follow_each_other_in_time(name: str) -> None:
    sessions = [
        (number, [message["time"] for message in said]) for number, said in groupby(messages(name), lambda m: m["session"])
    ]
    assert [number for number, _ in sessions] == list(range(1, len(sessions) + 1))
    assert all(len(set(times)) == 1 for _, times in sessions)
    assert [times[0] for _, times in sessions] == sorted({times[0] for _, times in sessions})


@pytest.mark.parametrize("name", SETS)
def test_all_evidence_exists_and_is_named_in_order_once(name: str) -> None:
    known = {message["id"] for message in messages(name)}
    for question in questions(name):
        assert question["evidence"] == sorted(set(question["evidence"]) & known) != []


@pytest.mark.parametrize("name", SETS)
def test_no_text_stands_twice_and_no_question_is_a_message(name: str) -> None:
    texts = [message["content"] for message in messages(name)] + [question["question"] for question in questions(name)]
    assert len(texts) == len(set(texts))
    assert all(text == text.strip() != "" for text in texts)


@pytest.mark.parametrize("name", SETS)
def test_every_type_is_present_and_no_other(name: str) -> None:
    assert {question["type"] for question in questions(name)} == TYPES[name]


# --- reading a file ---------------------------------------------------------------------------------------------------


def test_a_file_is_read_into_a_conversation_of_its_name(tmp_path: Path) -> None:
    second = MESSAGE | {"id": 2, "session": 2, "time": "1970-01-01T00:01", "role": "assistant"}
    found = load_set(written(tmp_path, MESSAGE, second, QUESTION))
    assert (found.id, [session.id for session in found.sessions]) == ("tiny", ["1", "2"])
    assert found.sessions[1].timestamp == 60 * 1000
    assert [(turn.id, turn.role) for session in found.sessions for turn in session.turns] == [("1", "user"), ("2", "assistant")]
    assert found.asked[0].gold == {"1"}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (QUESTION | {"evidence": [1, 7]}, "messages that are not there: 7"),
        (QUESTION | {"evidence": []}, "line 2 is neither"),
        (MESSAGE | {"content": " "}, "line 2 is neither"),
        (MESSAGE | {"role": "system"}, "line 2 is neither"),
        (MESSAGE | {"answer": "x"}, "line 2 is neither"),
        ([], "line 2 is neither"),
    ],
)
def test_a_file_that_is_no_set_is_refused(tmp_path: Path, row: object, message: str) -> None:
    with pytest.raises(BenchError, match=message):
        load_set(written(tmp_path, MESSAGE, row))


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="can't be read"):
        load_set(tmp_path / "nowhere.jsonl")


# --- the command ------------------------------------------------------------------------------------------------------


class Sent:
    """A memory that finds nothing and keeps what it is sent."""

    def __init__(self) -> None:
        self.bodies: list[str] = []

    def add(self, body: bytes) -> None:
        self.bodies.append(body.decode())

    def search(self, body: bytes) -> list[Hit]:
        self.bodies.append(body.decode())
        return []

    def describe(self) -> dict[str, object]:
        return {}


def test_the_product_sees_texts_roles_dates_and_questions_and_nothing_else(tmp_path: Path) -> None:
    def sent(message: dict[str, object], question: dict[str, object]) -> list[str]:
        memory = Sent()
        run(load_set(written(tmp_path, message, question)), memory, seed=0)
        return memory.bodies

    renamed = QUESTION | {"id": "secret", "type": "other", "evidence": [99]}
    assert sent(MESSAGE | {"id": 99, "session": 5}, renamed) == sent(MESSAGE, QUESTION)


def test_what_is_not_found_counts_nothing() -> None:
    whole = load_set(SETS["chinese"])
    rows = run(Conversation(0, "some", whole.sessions, whole.questions[:3]), Sent(), seed=0)
    assert [row["metrics"][name] for row in rows for name in COLUMNS] == [0.0] * (3 * len(COLUMNS))


def test_both_sets_are_played_printed_and_saved(tmp_path: Path) -> None:
    code, stdout, stderr = bench(tmp_path, *HASHING)
    assert code == 0, stderr
    for name in SETS:
        assert f"{name}\n\n" in stdout
        (path,) = (tmp_path / "results").glob(f"{name}-default-set-*.json")
        result = load(path)
        scored = result.summary["scored"]
        assert scored["n"] == len(result.questions) == len(questions(name))
        assert set(COLUMNS) <= scored.keys()
        assert 0 < scored["any@1"] <= scored["any@5"] < 1, "a set that is all found, or not at all, says nothing"
        assert result.types.keys() == TYPES[name]
        assert (result.manifest["data"]["messages"], result.manifest["concurrency"]) == (len(messages(name)), 1)
        assert messages(name)[-1]["content"] not in path.read_text()
    assert stdout.count("  any@1  any@5  recall@5  recall@10") == len(SETS)


def test_a_second_run_gives_the_same_figures_and_ties_with_the_first(tmp_path: Path) -> None:
    first, second = (reports(tmp_path, "--mode", "bm25", "--only", "code")["code"] for _ in range(2))
    assert (second["summary"], second["types"]) == (first["summary"], first["types"])
    assert second["manifest"]["command"] == "python -m benchmark.sets --only code --mode bm25"
    system = ours(load(Path(second["saved"])))
    comparison = paired(system, system)
    assert (comparison.ties, set(comparison.metrics)) == (len(questions("code")), set(COLUMNS))


def test_a_part_of_the_questions_is_printed_and_not_saved(tmp_path: Path) -> None:
    found = reports(tmp_path, "--mode", "bm25", "--limit", "2", "--only", "chinese")["chinese"]
    assert (found["n"], found["saved"], found["manifest"]["partial"]) == (2, None, True)
    assert not (tmp_path / "results").exists()


def test_a_running_server_gives_the_figures_of_the_engine(tmp_path: Path, serve: Serve) -> None:
    some = ("--only", "chinese", "--limit", "10")
    served = reports(tmp_path, *some, "--url", serve())["chinese"]
    assert served["summary"] == reports(tmp_path, *some, *HASHING)["chinese"]["summary"]


def test_saved_results_have_their_place_in_the_report_and_its_page(tmp_path: Path) -> None:
    bench(tmp_path, "--mode", "bm25")
    files = sorted(map(str, (tmp_path / "results").iterdir()))
    found = CliRunner().invoke(report_app, [*files, "--html", str(tmp_path / "page.html")])
    assert found.exit_code == 0, found.stderr
    assert [line.split(":")[0] for line in found.stdout.splitlines() if line.startswith("#")] == ["### Chinese", "### Code"]
    assert "A gold message among the first k" in (tmp_path / "page.html").read_text()


def test_sets_are_chosen_by_name_in_their_own_order() -> None:
    assert choose("") == ["chinese", "code"] == choose("code, chinese")
    assert choose("code") == ["code"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "x"], "no set x: there are chinese, code"),
        (["--profile", "seed"], "--profile seed: its hits are whole sessions"),
        (["--set", "x"], "--set wants KEY=VALUE"),
    ],
)
def test_what_cannot_be_run_is_said_with_exit_code_two(tmp_path: Path, arguments: list[str], message: str) -> None:
    code, stdout, stderr = bench(tmp_path, *arguments)
    assert (code, stdout) == (2, "")
    assert message in stderr
