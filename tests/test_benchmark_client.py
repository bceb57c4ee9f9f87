from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from time import sleep

import pytest
import uvicorn

from benchmark.client import MODES, HttpMemory, Mode, in_process, running
from benchmark.data import load_cases
from benchmark.errors import BenchError
from benchmark.play import play
from memserver.app import create_app
from memserver.config import Settings
from memserver.engine import Engine
from memserver.errors import ConfigError
from memserver.methods import load_settings

TINY = Path(__file__).parent / "longmemeval_tiny.json"
HASHING = {"embedder": "hashing"}
KEY = "key-of-this-test"


@contextmanager
def served(data_dir: Path) -> Iterator[str]:
    """The URL of a real server on loopback that wants ``KEY``."""
    engine = Engine.open(load_settings({}, {**HASHING, "data_dir": data_dir}))
    server = uvicorn.Server(uvicorn.Config(create_app(engine, api_keys=[KEY]), log_level="critical"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            while not server.started:
                sleep(0.01)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


def test_a_running_server_and_the_engine_rank_alike(tmp_path: Path) -> None:
    cases = load_cases(TINY)
    with in_process(Mode.HYBRID, HASHING, tmp_path) as memory:
        expected = [play(case, memory) for case in cases]
    with served(tmp_path / "data") as url, running(url, KEY) as server:
        assert [play(case, server) for case in cases] == expected


def test_a_server_that_met_the_case_before_ranks_it_the_same(tmp_path: Path) -> None:
    case = load_cases(TINY)[1]
    with served(tmp_path) as url, running(url, KEY) as server:
        assert play(case, server) == play(case, server)


def test_a_running_server_says_what_it_is(tmp_path: Path) -> None:
    with served(tmp_path) as url, running(url, KEY) as server:
        assert server.describe()["embedder"] == "hashing"


def test_a_refused_request_stops_with_the_servers_reason(tmp_path: Path) -> None:
    with (
        served(tmp_path) as url,
        running(url, "another key") as server,
        pytest.raises(BenchError, match=r"POST /add: answered 401 .*reason") as caught,
    ):
        play(load_cases(TINY)[0], server)
    assert "another key" not in str(caught.value)


def test_a_server_that_is_not_there_is_said_to_be_missing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with closing(HttpMemory(url)) as memory, pytest.raises(BenchError, match="is a server running"):
        memory.describe()


@pytest.mark.parametrize(
    ("answer", "message"),
    [(b"<html>", "not JSON"), (b'{"hits": []}', "is --url a memserver"), (b'{"data": [{"id": "1"}]}', "score")],
)
def test_another_kind_of_server_is_said_to_be_one(answer: bytes, message: str) -> None:
    class Other(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Other) as server, closing(HttpMemory(f"http://127.0.0.1:{server.server_port}")) as memory:
        thread = Thread(target=server.handle_request)
        thread.start()
        with pytest.raises(BenchError, match=message):
            memory.search(b"{}")
        thread.join()


def test_modes_take_their_legs_and_weights_from_the_default() -> None:
    lexical = tuple(leg for leg in Settings().legs if leg.retriever == "bm25")
    assert load_settings({}, MODES[Mode.BM25]).legs == lexical
    assert {leg.retriever for leg in load_settings({}, MODES[Mode.VECTOR]).legs} == {"vectors"}
    assert load_settings({}, MODES[Mode.HYBRID]) == load_settings({}, {})


def test_the_environment_does_not_change_what_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSERVER_FUSER", "rrf")
    with in_process(Mode.BM25, {}, tmp_path) as memory:
        assert memory.describe()["fuser"] == Settings().fuser


def test_a_setting_given_wins_over_the_modes(tmp_path: Path) -> None:
    with in_process(Mode.BM25, {"legs": "bm25/session=1"}, tmp_path) as memory:
        assert memory.describe()["legs"] == {"bm25/session": 1}


def test_an_unknown_setting_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="MEMSERVER_RESULT_CHRAS"), in_process(Mode.BM25, {"result_chras": 0}, tmp_path):
        pass
