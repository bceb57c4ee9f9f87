from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Event, Thread
from time import sleep
from typing import Any

import pytest
from conftest import Serve
from typer.testing import CliRunner

from benchmark.errors import BenchError
from benchmark.locomo import HEADLINE, app, run
from benchmark.locomo_data import load_conversations
from benchmark.results import load
from memserver.types import Hit

TINY = Path(__file__).parent / "locomo_tiny.json"
MODES = {
    "bm25": ["--mode", "bm25"],
    "vector": ["--mode", "vector", "--set", "embedder=hashing"],
    "hybrid": ["--set", "embedder=hashing"],
}


def bench(folder: Path, *arguments: str, data: Path = TINY) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of the command; its cache and its result stay in ``folder``."""
    places = ["--data", str(data), "--cache", str(folder / "cache"), "--save", str(folder / "results")]
    result = CliRunner().invoke(app, [*places, *arguments])
    return result.exit_code, result.stdout, result.stderr


def report(folder: Path, *arguments: str, data: Path = TINY) -> dict[str, Any]:
    """The JSON object of the last line of stdout."""
    code, stdout, stderr = bench(folder, "--json", *arguments, data=data)
    assert code == 0, stderr
    found: dict[str, Any] = json.loads(stdout.splitlines()[-1])
    return found


def figures(found: dict[str, Any]) -> list[object]:
    """What must not change from run to run."""
    return [found["summary"], found["intervals"], found["types"]]


@contextmanager
def model(answer: str) -> Iterator[tuple[str, list[str]]]:
    """The URL of a reader on loopback that always gives this answer, and the prompts it gets."""
    prompts: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            prompts.append(body["messages"][0]["content"])
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"choices": [{"message": {"content": answer}}]}).encode())

        def log_message(self, format: str, *args: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1", prompts
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_finds_the_evidence_of_the_tiny_set(tmp_path: Path, mode: str) -> None:
    found = report(tmp_path, *MODES[mode])
    assert [found["n"], found["any@10"], found["recall@100"], found["session_any@5"]] == [4, 1, 1, 1]
    assert found["manifest"]["mode"] == mode
    assert found["manifest"]["concurrency"] == 4
    assert (found["manifest"]["cache_misses"] > 0) is (mode != "bm25")
    assert set(HEADLINE) <= found.keys()


def test_categories_one_to_four_are_scored_and_the_adversarial_stands_apart(tmp_path: Path) -> None:
    found = report(tmp_path, "--mode", "bm25")
    assert {name: means["n"] for name, means in found["types"].items()} == {
        "single-hop": 2,
        "multi-hop": 1,
        "temporal": 1,
        "adversarial": 1,
    }
    assert (found["summary"]["scored"]["n"], found["summary"]["all"]["n"]) == (4, 5)


def test_the_corpus_and_what_was_left_out_are_told(tmp_path: Path) -> None:
    corpus = report(tmp_path, "--mode", "bm25")["manifest"]["data"]
    assert corpus["file"] == "locomo_tiny.json"
    assert {name: corpus[name] for name in corpus if name not in ("file", "sha256", "characters")} == {
        "conversations": 2,
        "questions": 5 + 1,
        "questions_without_evidence": 1,
        "unresolved_evidence": 2,
        "sessions": 3 + 1,
        "messages": 3 + 2 + 2 + 2,
    }


@pytest.mark.parametrize("mode", MODES)
def test_renaming_the_turns_of_the_data_set_changes_no_figure(tmp_path: Path, mode: str) -> None:
    renamed = tmp_path / "renamed.json"
    renamed.write_text(TINY.read_text().replace("D1:", "D81:").replace("D2:", "D72:").replace("tiny-", "x"))
    found = report(tmp_path, *MODES[mode], "--no-save", data=renamed)
    assert figures(found) == figures(report(tmp_path, *MODES[mode], "--no-save"))


@pytest.mark.parametrize("mode", MODES)
def test_concurrency_and_a_warm_cache_change_no_figure(tmp_path: Path, mode: str) -> None:
    serial = report(tmp_path, *MODES[mode], "--concurrency", "1")
    assert figures(report(tmp_path, *MODES[mode], "--concurrency", "3")) == figures(serial)


def test_a_running_server_gives_the_figures_of_the_engine(tmp_path: Path, serve: Serve) -> None:
    served = report(tmp_path, "--via", "http", "--url", serve())
    assert figures(served) == figures(report(tmp_path, "--set", "embedder=hashing"))
    assert served["manifest"]["via"] == "http"


def test_the_table_goes_to_stdout_and_progress_to_stderr(tmp_path: Path) -> None:
    code, stdout, stderr = bench(tmp_path, "--mode", "bm25", "--no-save")
    assert code == 0
    rows = stdout.split("\n\n")[0].splitlines()
    assert [row.split()[0] for row in rows] == ["n", "scored", "95%", "all", "multi-hop", "single-hop", "temporal", "adversarial"]
    assert "1 of 6 questions have no evidence and were not asked, 2 more pieces of evidence name no turn" in stdout
    assert stderr.splitlines()[-1].startswith("9/9 requests")  # 3 + 1 Adds, 4 + 1 Searches


def test_a_whole_run_is_saved_with_its_questions_and_without_a_text_of_the_data_set(tmp_path: Path) -> None:
    path = Path(report(tmp_path, "--mode", "bm25")["saved"])
    result = load(path)
    assert path.name.startswith("locomo-default-bm25-")
    assert [question["id"] for question in result.questions] == ["tiny-1/0", "tiny-1/1", "tiny-1/2", "tiny-1/4", "tiny-2/0"]
    assert "cello" not in path.read_text()
    assert result.performance["add_ms"]["n"] == 3 + 1
    assert result.performance["search_ms"]["n"] == 4 + 1


def test_a_part_of_the_conversations_is_printed_and_not_saved(tmp_path: Path) -> None:
    found = report(tmp_path, "--mode", "bm25", "--limit", "1")
    assert (found["n"], found["saved"], found["manifest"]["partial"]) == (3, None, True)
    assert not (tmp_path / "results").exists()


def test_a_reader_answers_the_scored_questions_from_the_memories(tmp_path: Path) -> None:
    with model("the cello") as (url, prompts):
        arguments = ["--mode", "bm25", "--reader", url, "--reader-model", "small", "--reader-tokens", "12"]
        found = report(tmp_path, *arguments)
        assert figures(report(tmp_path, *arguments)) == figures(found)
    assert len(prompts) == 4, "the second run asks nothing, an adversarial question is never asked"
    assert prompts[0].split("Memories:\n")[1].split("\n\nQuestion: ")[1].startswith("Which instrument did Ines buy?")
    assert len(prompts[0].split("Memories:\n")[1].split("\n\nQuestion: ")[0].encode()) == 12 * 4
    scored = found["summary"]["scored"]
    assert scored["reader_em"] == scored["reader_f1"] == 1 / 4  # "a cello" alone
    assert found["manifest"]["reader"]["model"] == "small"
    assert found["manifest"]["reader"]["memory_tokens"] == 12
    assert found["manifest"]["command"].endswith("--mode bm25 --reader URL --reader-model small --reader-tokens 12")
    assert url not in json.dumps(found)


def test_a_failure_of_one_conversation_ends_the_others_long_before_their_last_question() -> None:
    failing, long = load_conversations(TINY)
    questions = 10_000 * long.questions
    begun = Event()
    searches = []

    class Memory:
        def add(self, body: bytes) -> None:
            if len(json.loads(body)["messages"]) == len(failing.sessions[0].turns):
                begun.wait()
                raise BenchError("out of order")

        def search(self, body: bytes) -> list[Hit]:
            begun.set()
            searches.append(body)
            sleep(0.01)  # all of them would take minutes
            return []

        def describe(self) -> dict[str, object]:
            return {}

    with pytest.raises(BenchError, match="out of order"):
        run([failing, replace(long, questions=questions)], Memory(), seed=0, concurrency=2)
    assert 1 <= len(searches) < len(questions)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "result_chars"], "--set wants KEY=VALUE"),
        (["--profile", "nothing-like-it"], "--profile nothing-like-it: there are default"),
        (["--profile", "seed"], "LoCoMo's evidence are turns"),
        (["--url", "http://127.0.0.1:1", "--mode", "bm25"], "a running server (--url) has its own settings"),
        (["--reader", "http://127.0.0.1:1/v1"], "--reader and --reader-model go together"),
        (["--mode", "bm25", "--reader", "http://127.0.0.1:1/v1", "--reader-model", "m"], "--reader: no answer"),
        (["--mode", "bm25", "--reader", "not a url", "--reader-model", "m"], "--reader: no answer"),
    ],
)
def test_what_cannot_be_run_is_said_with_exit_code_two(tmp_path: Path, arguments: list[str], message: str) -> None:
    code, stdout, stderr = bench(tmp_path, *arguments)
    assert (code, stdout) == (2, "")
    assert message in stderr
    assert "Traceback" not in stderr


def test_a_missing_data_file_is_said_with_exit_code_two_by_the_command_itself() -> None:
    command = [sys.executable, "-m", "benchmark.locomo", "--data", "nowhere.json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=TINY.parents[1])
    assert (done.returncode, done.stdout) == (2, "")
    assert "nowhere.json: can't be read" in done.stderr
