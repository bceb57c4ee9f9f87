"""The HTTP edge with a fake engine: in process, and on a real server where connections matter."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import uvicorn
from fastapi.testclient import TestClient

from memserver.app import create_app
from memserver.contract import read_add, read_search
from memserver.errors import (
    BadRequest,
    BodyTooLarge,
    ConfigError,
    Conflict,
    EmbedderError,
    StoreError,
    TooManyRequests,
    Unauthorized,
    Unavailable,
)
from memserver.logs import formatter
from memserver.openapi import AddBody, Problem, SearchAnswer, SearchBody
from memserver.types import AddRequest, Deleted, Hit, SearchRequest

SECRET = "the cat is called Mitzi"
KEY = "schlüssel-1"
ADD = {"request_id": "r", "user_id": "u", "session_id": "s", "messages": [{"role": "user", "content": SECRET}]}
SEARCH = {"user_id": "u", "query": SECRET, "top_k": 100}
HIT = Hit("m1", "text", 0.5)
MIB = 2**20


class FakeEngine:
    """Stores each request once. ``gate`` holds every call that has ``entered``; ``error`` is raised by every call."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.stored: dict[tuple[str, str], AddRequest] = {}
        self.searches: list[SearchRequest] = []
        self.described = 0
        self.closed = False
        self.gate = threading.Event()
        self.gate.set()
        self.tidied = threading.Event()
        self.entered = threading.Semaphore(0)

    def add(self, request: AddRequest) -> bool:
        self._enter()
        stored = self.stored.setdefault((request.user_id, request.request_id), request)
        if stored.digest != request.digest:
            raise Conflict
        return stored is request

    def search(self, request: SearchRequest) -> list[Hit]:
        self._enter()
        self.searches.append(request)
        return [HIT] if any(user_id == request.user_id for user_id, _ in self.stored) else []

    def delete_user(self, user_id: str) -> Deleted:
        self._enter()
        mine = [key for key in self.stored if key[0] == user_id]
        return Deleted(sum(len(self.stored.pop(key).messages) for key in mine), wiped=True)

    def tidy(self) -> None:
        self.tidied.set()

    def describe(self) -> dict[str, object]:
        self.described += 1
        return {"embedder": "fake", "dimension": 3}

    def close(self) -> None:
        self.closed = True

    def _enter(self) -> None:
        self.entered.release()
        self.gate.wait()
        if self.error is not None:
            raise self.error


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def client(engine: FakeEngine) -> TestClient:
    return TestClient(create_app(engine))


@contextmanager
def serving(engine: FakeEngine, **options: Any) -> Iterator[str]:
    """The URL of a real server on a free port of the loopback."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(create_app(engine, **options), log_config=None, ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        engine.gate.set()
        server.should_exit = True
        thread.join()
        listener.close()


def reason(body: object) -> str:
    return Problem.model_validate(body).detail.reason


# --- add and search ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prefix", ["", "/v1"])
def test_the_three_routes_are_served_plainly_and_under_v1(client: TestClient, prefix: str) -> None:
    assert client.post(f"{prefix}/add", json=ADD).json() == {
        "success": True,
        "request_id": "r",
        "user_id": "u",
        "session_id": "s",
    }
    assert client.post(f"{prefix}/search", json=SEARCH).json() == {"data": [{"id": "m1", "content": "text", "score": 0.5}]}
    assert client.get(f"{prefix}/health").status_code == 200


def test_the_engine_gets_what_the_contract_reads(client: TestClient, engine: FakeEngine) -> None:
    client.post("/add", json=ADD)
    client.post("/search", json=SEARCH)
    assert engine.stored["u", "r"] == read_add(json.dumps(ADD).encode())[0]
    assert engine.searches == [read_search(json.dumps(SEARCH).encode())]


@pytest.mark.parametrize("odd", ["eval:a:b", "a/../..//b", "用户-é-🙂", "\u0000", "x" * 4096])
def test_ids_come_back_byte_for_byte(client: TestClient, odd: str) -> None:
    ids = {"request_id": odd, "user_id": odd, "session_id": odd}
    body = json.dumps(ids | {"messages": []}, ensure_ascii=False).encode()
    answer = client.post("/add", content=body)
    assert answer.json() == {"success": True, **ids}
    assert json.dumps(odd, ensure_ascii=False).encode() in answer.content


@pytest.mark.parametrize(
    "odd_message",
    [
        {"role": "user", "content": " "},
        {"role": "user", "content": None},
        {"role": "narrator", "content": ["a", {"type": "text", "text": "b"}]},
        {"role": None, "content": "\u0000\ud800", "name": "extra"},
        {"role": "user", "content": "x", "timestamp": 4_200_000_000_000},
        {"role": "user", "content": "x", "timestamp": 10**18},
        {"role": "user", "content": "x", "timestamp": "soon"},
    ],
)
def test_nothing_readable_is_ever_refused(client: TestClient, odd_message: dict[str, Any]) -> None:
    body = json.dumps({"request_id": "r", "user_id": "u", "session_id": None, "messages": [odd_message], "extra": 1})
    assert client.post("/add", content=body).status_code == 200


def test_a_search_of_an_unknown_user_finds_nothing(client: TestClient) -> None:
    assert client.post("/search", json=SEARCH).content == b'{"data":[]}'


def test_the_content_type_of_a_request_does_not_matter(client: TestClient) -> None:
    assert client.post("/add", content=json.dumps(ADD), headers={"content-type": "text/plain"}).status_code == 200


def test_answers_are_json(client: TestClient) -> None:
    for answer in (client.post("/add", json=ADD), client.post("/add"), client.get("/health"), client.get("/nowhere")):
        assert answer.headers["content-type"] == "application/json"


def test_the_engine_is_closed_at_shutdown(engine: FakeEngine) -> None:
    with TestClient(create_app(engine)):
        assert not engine.closed
    assert engine.closed


# --- health -----------------------------------------------------------------------------------------------------------


def test_health_tells_what_is_served_and_asks_the_engine_only_once(client: TestClient, engine: FakeEngine) -> None:
    for _ in range(3):
        assert client.get("/health").json() == {"status": "ok", "auth": "open", "embedder": "fake", "dimension": 3}
    assert engine.described == 1


def test_health_needs_no_key_and_says_that_the_rest_does(engine: FakeEngine) -> None:
    answer = TestClient(create_app(engine, api_keys=[KEY])).get("/health")
    assert answer.json()["auth"] == "keys"
    assert KEY not in answer.text


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "status", "headers"),
    [
        (BadRequest("query", "advice"), 422, {}),
        (Unauthorized("advice"), 401, {"www-authenticate": "Bearer"}),
        (Conflict(), 409, {}),
        (BodyTooLarge("advice"), 413, {}),
        (TooManyRequests("advice"), 429, {"retry-after": "1"}),
        (Unavailable("advice"), 503, {"retry-after": "5"}),
        (EmbedderError("advice"), 503, {"retry-after": "5"}),
        (StoreError("advice"), 503, {"retry-after": "5"}),
    ],
)
@pytest.mark.parametrize("path", ["/add", "/search"])
def test_a_domain_error_has_its_status_and_its_advice(error: Exception, status: int, headers: dict[str, str], path: str) -> None:
    answer = TestClient(create_app(FakeEngine(error))).post(path, json=ADD | SEARCH)
    assert answer.status_code == status
    assert str(error) in reason(answer.json())
    assert headers.items() <= dict(answer.headers).items()


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/add", "{", "body"),
        ("/add", "[]", "body"),
        ("/add", json.dumps(ADD | {"request_id": ""}), "request_id"),
        ("/add", json.dumps(ADD | {"user_id": None}), "user_id"),
        ("/add", json.dumps(ADD | {"messages": None}), "messages"),
        ("/search", json.dumps({"user_id": "u"}), "query"),
        ("/search", json.dumps(SEARCH | {"user_id": ""}), "user_id"),
    ],
)
def test_an_unreadable_request_is_422_with_the_field(client: TestClient, path: str, body: str, field: str) -> None:
    answer = client.post(path, content=body)
    assert answer.status_code == 422
    assert answer.json()["detail"]["field"] == field
    assert SECRET not in answer.text


def test_the_same_request_id_with_another_body_is_409(client: TestClient) -> None:
    assert client.post("/add", json=ADD).status_code == 200
    assert client.post("/add", json=ADD).status_code == 200
    assert client.post("/add", json=ADD | {"messages": ["another"]}).status_code == 409


@pytest.mark.parametrize(
    ("method", "path", "status"), [("POST", "/nowhere", 404), ("GET", "/add", 405), ("POST", "/health", 405)]
)
def test_a_wrong_path_or_method_is_answered_in_the_same_shape(client: TestClient, method: str, path: str, status: int) -> None:
    answer = client.request(method, path)
    assert answer.status_code == status
    assert "POST /add" in reason(answer.json())


def test_an_unexpected_error_is_500_and_one_line_of_type_and_place(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with serving(FakeEngine(ValueError(SECRET))) as url:
        answer = httpx.post(f"{url}/add", json=ADD)
    assert answer.status_code == 500
    assert reason(answer.json()).startswith("internal error")
    (line,) = (record for record in caplog.records if record.levelno >= logging.ERROR)
    told = json.loads(formatter(plain=False).format(line))
    assert told["error"] == "ValueError"
    assert "FakeEngine._enter:" in told["place"]
    assert line.exc_info is None
    assert SECRET not in answer.text + caplog.text + str(told)


@pytest.mark.parametrize("error", [None, KeyError(SECRET), UnicodeError(SECRET), RecursionError(SECRET), StoreError("locked")])
def test_neither_content_nor_keys_are_logged_or_repeated(error: Exception | None, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    client = TestClient(create_app(FakeEngine(error), api_keys=[KEY]))
    answers = [
        client.post(path, content=body, headers=[(b"x-api-key", key.encode())])
        for path in ("/add", "/search")
        for body in (json.dumps(ADD | SEARCH), json.dumps({"user_id": [SECRET]}), SECRET)
        for key in (KEY, SECRET)
    ]
    shown = "".join(map(formatter(plain=False).format, caplog.records)) + "".join(
        answer.text + str(answer.headers) for answer in answers
    )
    assert SECRET not in shown
    assert KEY not in shown


# --- keys -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/add", "/search", "/v1/add", "/v1/search"])
@pytest.mark.parametrize("name", ["Authorization: Bearer ", "authorization: tOKEN ", "X-Api-Key: "])
def test_every_key_opens_every_route(engine: FakeEngine, path: str, name: str) -> None:
    client = TestClient(create_app(engine, api_keys=["another", KEY]))
    header, scheme = name.split(": ")
    right, wrong = ([(header.encode(), (scheme + key).encode())] for key in (KEY, KEY + "x"))
    assert client.post(path, json=ADD | SEARCH, headers=right).status_code == 200
    assert client.post(path, json=ADD | SEARCH, headers=wrong).status_code == 401


def test_a_missing_key_is_401_before_the_body_is_looked_at(engine: FakeEngine) -> None:
    answer = TestClient(create_app(engine, api_keys=[KEY], max_body_bytes=10)).post("/add", content="not JSON, and too long")
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert not engine.stored


def test_an_empty_key_stops_the_start(engine: FakeEngine) -> None:
    with pytest.raises(ConfigError):
        create_app(engine, api_keys=["good", ""])


# --- limits, on a real server -----------------------------------------------------------------------------------------


def chunked(size: int) -> Iterator[bytes]:
    for _ in range(size // 2**16):
        yield b" " * 2**16


@pytest.mark.parametrize("chunks", [False, True])
@pytest.mark.parametrize("options", [{"max_body_bytes": MIB}, {"api_keys": [KEY]}, {"max_in_flight": 0}])
def test_a_client_that_sends_much_sees_the_refusal_and_no_reset(
    engine: FakeEngine, chunks: bool, options: dict[str, Any]
) -> None:
    status = {"max_body_bytes": 413, "api_keys": 401, "max_in_flight": 429}[next(iter(options))]
    with serving(engine, **options) as url, httpx.Client(base_url=url) as client:
        for _ in range(2):
            answer = client.post("/add", content=chunked(16 * MIB) if chunks else b" " * 16 * MIB)
            assert answer.status_code == status
            assert reason(answer.json())
        assert client.get("/health").status_code == 200
    assert not engine.entered.acquire(blocking=False)


def test_a_body_of_exactly_the_limit_passes(engine: FakeEngine) -> None:
    body = json.dumps(ADD).encode()
    client = TestClient(create_app(engine, max_body_bytes=len(body)))
    assert client.post("/add", content=body).status_code == 200
    assert client.post("/add", content=body + b" ").status_code == 413


def test_a_body_of_42_mib_passes_by_default(client: TestClient) -> None:
    assert client.post("/add", content=json.dumps(ADD).ljust(42 * MIB)).status_code == 200


def test_under_full_load_health_answers_and_the_next_request_is_429(engine: FakeEngine) -> None:
    limit = 64

    async def load(url: str) -> list[int]:
        async with httpx.AsyncClient(base_url=url, timeout=None, limits=httpx.Limits(max_connections=None)) as client:
            bodies = [ADD | {"request_id": f"r{i}"} for i in range(limit)]
            held = [asyncio.create_task(client.post("/add", json=body)) for body in bodies]
            for _ in range(limit):
                await asyncio.to_thread(engine.entered.acquire)
            assert (await client.get("/health")).status_code == 200
            refused = await client.post("/search", json=SEARCH)
            assert refused.status_code == 429
            assert refused.headers["retry-after"] == "1"
            engine.gate.set()
            statuses = [(await task).status_code for task in held]
            return [*statuses, (await client.post("/search", json=SEARCH)).status_code]

    engine.gate.clear()
    with serving(engine, max_in_flight=limit) as url:
        assert asyncio.run(load(url)) == [200] * (limit + 1)
    assert len(engine.stored) == limit


def test_a_client_that_goes_away_while_sending_gives_its_slot_back(engine: FakeEngine) -> None:
    with serving(engine, max_in_flight=1) as url, httpx.Client(base_url=url) as client:

        def post() -> int:
            return client.post("/add", json=ADD).status_code

        with socket.create_connection(("127.0.0.1", httpx.URL(url).port or 0)) as slow:
            slow.sendall(b"POST /add HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n{")
            while post() != 429:  # until the server has seen the slow client
                pass
        while post() != 200:  # until it has seen it go
            pass


@pytest.mark.parametrize("error", [BadRequest("query", "advice"), StoreError("advice"), ValueError(SECRET)])
def test_a_failed_request_gives_its_slot_back(error: Exception) -> None:
    engine = FakeEngine(error)
    client = TestClient(create_app(engine, max_in_flight=1))
    assert client.post("/add", json=ADD).status_code >= 400
    engine.error = None
    assert client.post("/add", json=ADD).status_code == 200


def test_replays_that_run_at_once_get_the_same_answer_and_are_stored_once(engine: FakeEngine) -> None:
    engine.gate.clear()
    with serving(engine) as url, ThreadPoolExecutor(8) as pool:
        running = [pool.submit(httpx.post, f"{url}/add", json=ADD) for _ in range(8)]
        for _ in running:
            engine.entered.acquire()
        engine.gate.set()
        answers = [future.result() for future in running]
    assert {(answer.status_code, answer.content) for answer in answers} == {(200, read_add(json.dumps(ADD).encode())[1])}
    assert len(engine.stored) == 1


# --- documentation ----------------------------------------------------------------------------------------------------


def test_the_documentation_is_served_and_shows_each_route_once(client: TestClient) -> None:
    assert client.get("/docs").status_code == 200
    assert list(client.get("/openapi.json").json()["paths"]) == ["/add", "/search", "/users/{user_id}", "/health"]


def test_every_reference_of_the_documentation_resolves(client: TestClient) -> None:
    text = client.get("/openapi.json").text
    named = {piece.split('"')[0] for piece in text.split("#/components/schemas/")[1:]}
    assert {"AddBody", "SearchBody", "Problem"} <= named
    assert named <= set(json.loads(text)["components"]["schemas"])


def test_the_examples_of_the_documentation_are_true(client: TestClient) -> None:
    document = client.get("/openapi.json").json()
    schemas = document["components"]["schemas"]
    for example in schemas["AddBody"]["examples"]:
        assert AddBody.model_validate(example)
        assert len(read_add(json.dumps(example).encode())[0].messages) == len(example["messages"])
        assert client.post("/add", json=example).json().keys() == schemas["Added"]["examples"][0].keys()
    for example in schemas["SearchBody"]["examples"]:
        assert SearchBody.model_validate(example)
        assert read_search(json.dumps(example).encode()).options == tuple(example.get("options", ()))
    for example in schemas["SearchAnswer"]["examples"]:
        assert SearchAnswer.model_validate(example)
    for path in ("/add", "/search"):
        for status, answer in document["paths"][path]["post"]["responses"].items():
            if status != "200":
                assert Problem.model_validate(answer["content"]["application/json"]["example"])


# --- deletion ---------------------------------------------------------------------------------------------------------

ODD_IDS = [
    "u",
    "a/b",
    "../u",
    "/",
    "a//b/",
    "?q=1#f",
    "é",
    "e\u0301",
    "100%",
    "%2F",
    "line\nbreak",
    "u\n",
    "\0",
    " ",
    "🙂",
    "x" * 4096,
]


def test_a_user_is_deleted_by_its_percent_encoded_id_whatever_it_is(engine: FakeEngine) -> None:
    with serving(engine) as url, httpx.Client(base_url=url) as client:  # the TestClient decodes a path twice
        for user in ODD_IDS:
            for user_id in {"u", user, user + "2"}:
                engine.add(replace(read_add(json.dumps(ADD).encode())[0], user_id=user_id))
            path = f"/users/{quote(user, safe='')}"
            assert [client.delete(path).json() for _ in range(2)] == [{"deleted": count, "wiped": True} for count in (1, 0)]
            assert {user_id for user_id, _ in engine.stored} == {"u", user + "2"} - {user}
            engine.stored.clear()


def test_deleting_takes_a_key_and_an_id(engine: FakeEngine) -> None:
    client = TestClient(create_app(engine, api_keys=["k"]))
    assert client.delete("/users/u").status_code == 401
    assert client.delete("/users/u", headers={"X-Api-Key": "k"}).json() == {"deleted": 0, "wiped": True}
    assert client.delete("/v1/users/u", headers={"X-Api-Key": "k"}).json() == {"deleted": 0, "wiped": True}
    assert client.delete("/users/", headers={"X-Api-Key": "k"}).status_code == 404
    assert client.get("/users/u", headers={"X-Api-Key": "k"}).status_code == 405


def test_a_deletion_that_fails_is_a_503(engine: FakeEngine, client: TestClient) -> None:
    engine.error = StoreError("the disk is full")
    assert client.delete("/users/u").status_code == 503


def test_the_hourly_round_runs_at_the_start(engine: FakeEngine) -> None:
    with serving(engine):
        assert engine.tidied.wait(60)
