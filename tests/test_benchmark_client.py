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

from benchmark.client import HttpMemory, Mode, in_mode, in_process, mode_of, running
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
    server = uvicorn.Server(uvicorn.Config(create_app(engine, api_keys=[KEY]), log_config=None))
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
        expected = [play(case, memory).turns for case in cases]
    with served(tmp_path / "data") as url, running(url, KEY) as server:
        assert [play(case, server).turns for case in cases] == expected


def test_a_server_that_met_the_case_before_ranks_it_the_same(tmp_path: Path) -> None:
    case = load_cases(TINY)[1]
    with served(tmp_path) as url, running(url, KEY) as server:
        assert play(case, server).turns == play(case, server).turns


def test_a_running_server_says_what_it_is(tmp_path: Path) -> None:
    with served(tmp_path) as url, running(url, KEY) as server:
        assert server.describe()["embedder"] == "hashing"
        assert server.usage() == {}
        assert server.cached() == {"cache_hits": None, "cache_misses": None}


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


def test_an_address_that_is_none_is_said_to_be_none() -> None:
    with pytest.raises(BenchError, match="--url http://h:abc: not an address"):
        HttpMemory("http://h:abc")


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


def test_a_mode_keeps_the_legs_of_its_kind_with_their_weights() -> None:
    mixed = {"legs": "bm25_prefix/chunk=0.4, vectors/chunk=0.6, bm25/session=1"}
    assert in_mode(Mode.BM25, mixed) == {"embedder": "none", "legs": "bm25_prefix/chunk=0.4, bm25/session=1"}
    assert in_mode(Mode.VECTOR, mixed) == {"legs": "vectors/chunk=0.6"}
    assert in_mode(Mode.HYBRID, mixed) == mixed


def test_without_legs_given_a_mode_keeps_those_of_the_default() -> None:
    lexical = tuple(leg for leg in Settings().legs if leg.retriever == "bm25")
    assert load_settings({}, in_mode(Mode.BM25, {})).legs == lexical


def test_a_mode_of_which_no_leg_is_left_is_refused() -> None:
    with pytest.raises(BenchError, match="--mode vector: no such leg"):
        in_mode(Mode.VECTOR, {"legs": "bm25/chunk=1"})


@pytest.mark.parametrize(
    ("legs", "mode"),
    [
        ({"bm25/chunk": 1, "rank_bm25/session": 1}, Mode.BM25),
        ({"vectors/chunk": 1}, Mode.VECTOR),
        ({"bm25/chunk": 1, "vectors/chunk": 1}, Mode.HYBRID),
        ({"method_of_a_fork/chunk": 1}, None),
        ({}, None),
    ],
)
def test_the_mode_of_a_product_is_told_by_its_legs(legs: dict[str, float], mode: Mode | None) -> None:
    assert mode_of({"legs": legs}) is mode


def test_the_environment_does_not_change_what_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSERVER_FUSER", "rrf")
    with in_process(Mode.BM25, {}, tmp_path) as memory:
        assert memory.describe()["fuser"] == Settings().fuser


def test_the_engine_tells_the_settings_that_change_figures_and_no_others(tmp_path: Path) -> None:
    with in_process(Mode.HYBRID, {**HASHING, "api_keys": "secret", "depth": 7}, tmp_path) as memory:
        description = memory.describe()
    settings = description["settings"]
    assert isinstance(settings, dict)
    assert (settings["depth"], settings["embedder"]) == ("7", "hashing")
    assert settings.keys().isdisjoint({"api_keys", "data_dir", "port"})
    assert description["fingerprint"] == "hashing-1-256"


def test_what_was_embedded_and_what_is_kept_is_counted(tmp_path: Path) -> None:
    case = load_cases(TINY)[0]
    texts = 2 + 2 + 2 + 1  # the messages of three sessions, a blank one left out, and the question
    for hits, misses in ((0, texts), (texts, 0)):
        with in_process(Mode.HYBRID, HASHING, tmp_path) as memory:
            play(case, memory)
            usage, cached = memory.usage(), memory.cached()
        assert cached == {"cache_hits": hits, "cache_misses": misses}
        assert usage["embedded_texts"] == texts
        assert usage["index_bytes"] > 0
        assert usage["database_bytes"] > 0


def test_a_setting_given_wins_over_the_modes(tmp_path: Path) -> None:
    with in_process(Mode.BM25, {"legs": "bm25/session=1"}, tmp_path) as memory:
        assert memory.describe()["legs"] == {"bm25/session": 1}


def test_an_unknown_setting_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="MEMSERVER_RESULT_CHRAS"), in_process(Mode.BM25, {"result_chras": 0}, tmp_path):
        pass
