from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from benchmark.errors import BenchError
from benchmark.reader import PROMPT, Reader

KEY = "key-of-this-test"


class FakeModel:
    """A chat endpoint on loopback that keeps what it is asked and answers ``reply`` with ``status``."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.status = 200
        self.reply: object = {"choices": [{"message": {"content": " a cello\n"}}]}
        self.server = HTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                fake.headers.append({name.lower(): value for name, value in self.headers.items()} | {"path": self.path})
                fake.requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(fake.status)
                self.end_headers()
                self.wfile.write(json.dumps(fake.reply).encode())

            def log_message(self, format: str, *args: object) -> None: ...

        return Handler


@pytest.fixture
def model() -> Iterator[FakeModel]:
    fake = FakeModel()
    with fake.server:
        thread = Thread(target=fake.server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield fake
        fake.server.shutdown()
        thread.join()


def ask(model: FakeModel, folder: Path, question: str = "What did she buy?", name: str = "small") -> str:
    with closing(Reader(model.url, name, folder, KEY)) as reader:
        return reader.answer(question, "[2023-05-08] Ines: I bought a cello.")


def test_the_model_is_asked_at_temperature_zero_with_memories_and_question(model: FakeModel, tmp_path: Path) -> None:
    assert ask(model, tmp_path) == "a cello"
    prompt = PROMPT.format(memories="[2023-05-08] Ines: I bought a cello.", question="What did she buy?")
    assert model.requests == [
        {"model": "small", "temperature": 0, "max_tokens": 48, "messages": [{"role": "user", "content": prompt}]}
    ]
    assert model.headers[0]["path"] == "/v1/chat/completions"
    assert model.headers[0]["authorization"] == f"Bearer {KEY}"


def test_an_answer_is_asked_for_once_whatever_the_run(model: FakeModel, tmp_path: Path) -> None:
    first = ask(model, tmp_path)
    model.reply = "not asked again"
    assert ask(model, tmp_path) == first
    assert len(model.requests) == 1


def test_another_question_or_model_is_another_answer(model: FakeModel, tmp_path: Path) -> None:
    ask(model, tmp_path)
    ask(model, tmp_path, question="What did she sell?")
    ask(model, tmp_path, name="large")
    assert len(model.requests) == 3


@pytest.mark.parametrize(
    ("status", "reply", "message"),
    [
        (500, {"error": "overloaded"}, "answered 500 .*overloaded.*answers so far are kept"),
        (200, {"data": []}, "not a chat completion"),
        (200, {"choices": []}, "not a chat completion"),
        (200, {"choices": [{"message": {"content": None}}]}, "not a chat completion"),
    ],
)
def test_a_failing_model_stops_the_run_and_nothing_is_kept_of_it(
    model: FakeModel, tmp_path: Path, status: int, reply: object, message: str
) -> None:
    good, model.status, model.reply = model.reply, status, reply
    with pytest.raises(BenchError, match=message) as caught:
        ask(model, tmp_path)
    assert KEY not in str(caught.value)
    model.status, model.reply = 200, good
    assert ask(model, tmp_path) == "a cello"


def test_a_model_that_is_not_there_is_said_to_be_missing(model: FakeModel, tmp_path: Path) -> None:
    model.url = "http://127.0.0.1:1"
    with pytest.raises(BenchError, match="no answer"):
        ask(model, tmp_path)


def test_a_folder_that_cannot_be_used_is_said(model: FakeModel, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BenchError, match="give another folder"):
        ask(model, tmp_path / "file")


def test_what_a_result_says_of_the_reader_holds_no_key_and_no_place(model: FakeModel, tmp_path: Path) -> None:
    with closing(Reader(model.url, "small", tmp_path, KEY)) as reader:
        assert reader.describe() == {"model": "small", "prompt": PROMPT, "temperature": 0, "max_tokens": 48}
