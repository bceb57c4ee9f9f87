"""Preflight finds nothing wrong with our own server, and each of many planted faults by the check that is named after it."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import uvicorn
from conftest import free_port
from faulty_server import FAULTS, KEY, FaultyServer
from starlette.types import ASGIApp
from typer.testing import CliRunner

from memserver.__main__ import cli
from memserver.app import create_app
from memserver.engine import Engine
from memserver.methods import load_settings
from memserver.preflight.client import Client, Target, Unreachable, encoded
from memserver.preflight.probe import Check, Options, Probe
from memserver.preflight.runner import CHECKS, GROUPS, Outcome, Status, clean_up, run

IN_TESTS = Options(skip_slow=True, looks=2, health_seconds=0.5)
UNHURRIED = Options(health_seconds=60.0)  # how fast this machine is, is no matter of the server's

FOUND_BY: dict[str, set[str]] = {
    "health wants the key": {"health: answers 2xx without a key"},
    "health is slow": {"health: answers quickly while Adds run"},
    "202 for an Add": {"add: answers 200, never 202"},
    "no success in the answer": {"add: says success: true"},
    "ids trimmed in the echo": {"add: echoes ids with blanks around them"},
    "ids normalized in the echo": {"add: echoes ids with separate accents (NFD)"},
    "ids cut in the echo": {"add: echoes ids with 200 characters"},
    "indexed after the answer": {"add: is searchable as soon as it answers"},
    "unknown fields refused in Add": {"add: ignores unknown fields"},
    "unknown fields refused in Search": {"search: ignores unknown fields"},
    "null session refused": {"add: takes a null session_id"},
    "ten messages kept of an Add": {"add: keeps every message of a full Add"},
    "top_k ignored": {"search: obeys top_k 1", "search: obeys top_k 3"},
    "one hit more than top_k": {"search: obeys top_k 1", "search: obeys top_k 3", "search: obeys top_k 100"},
    "missing top_k refused": {"search: takes a missing top_k"},
    "null instead of no hits": {
        "search: answers an unknown user with []",
        "search: answers a user with blank turns only with []",
    },
    "404 for unknown users": {"search: answers an unknown user with []", "search: answers a user with blank turns only with []"},
    "numbers as ids": {"search: ids are non-empty strings"},
    "new ids in each answer": {
        "search: an id stays with its memory",
        "search: gives the same answer again",
        "search: cuts ties at top_k the same way again",
    },
    "an empty content": {"search: contents are not empty"},
    "contents as JSON": {"search: contents are plain text"},
    "rising scores": {"search: scores are numbers that never rise"},
    "scores as strings": {"search: scores are numbers that never rise"},
    "created_at as an object": {"search: created_at is a time or absent"},
    "worst first": {"search: the obvious memory comes first"},
    "another order each time": {"search: gives the same answer again", "search: cuts ties at top_k the same way again"},
    "another order of ties each time": {"search: cuts ties at top_k the same way again"},
    "options refused": {"search: takes options"},
    "query parts refused": {"search: takes a query of content parts"},
    "500 for a lone surrogate in a query": {"search: takes a query with NUL and a lone surrogate"},
    "users not told apart": {f"isolation: {check.name}" for check in CHECKS if check.name.startswith("nothing of ")},
    "case of users folded": {"isolation: nothing of a user of another case is found"},
    "users normalized": {"isolation: nothing of a user of another Unicode form is found"},
    "users trimmed": {"isolation: nothing of a user whose id has blanks around it is found"},
    "users read as paths": {"isolation: nothing of a user whose id looks like a path to it is found"},
    "sessions filter": {"isolation: a Search finds all sessions of the user"},
    "400 for a blank turn": {"odd input: takes an empty turn", "odd input: takes a blank turn"},
    "422 past the year 2100": {
        "odd input: takes a timestamp past the year 2100",
        "odd input: takes a timestamp past the year 9999",
    },
    "422 for a missing timestamp": {"odd input: takes a timestamp that is missing"},
    "500 for a NUL byte": {"odd input: takes a NUL byte alone", "odd input: takes a NUL byte in the text"},
    "500 for a lone surrogate": {"odd input: takes a lone surrogate in the text"},
    "unknown roles refused": {"odd input: takes an unknown role", "odd input: takes a null role"},
    "null content refused": {"odd input: takes a null content"},
    "content arrays refused": {
        "odd input: takes an empty array as content",
        "odd input: takes an array of strings as content",
        "odd input: takes an array of text parts as content",
    },
    "timestamps taken for keys": {"odd input: takes equal timestamps in one session"},
    "texts cut at 1,000 characters": {
        "texts: finds the end of a message of 8,000 characters",
        "texts: finds the end of a text of 100,000 characters",
    },
    "500 for a long query": {"texts: takes a query of 133,904 characters"},
    "ASCII alone searched": {"texts: finds Chinese"},
    "fragments dropped": {"texts: keeps both halves of a text cut across messages"},
    "WebP refused": {"images: takes a WebP image", "images: returns text and images in their order"},
    "images left out of hits": {"images: returns text and images in their order"},
    "texts before images": {"images: returns text and images in their order"},
    "replays stored again": {"idempotency: stores a replay once", "idempotency: stores replays at the same moment once"},
    "409 for a replay": {"idempotency: answers a replay with 200", "idempotency: stores replays at the same moment once"},
    "request_id not compared": {"idempotency: answers another body under a used request_id with 409"},
    "409 and written": {"idempotency: writes nothing with that 409"},
    "request_id unique over all users": {"idempotency: takes the request_id of another user"},
    "500 for what is no JSON": {"errors: answers what is no JSON object with 400 or 422"},
    "500 for a top_k of another type": {"errors: has no 5xx for values of a wrong type"},
    "422 without the field": {
        f"errors: {call} is 422 and says so"
        for call in (
            "Add without request_id",
            "Add without user_id",
            "Add without messages",
            "Search without user_id",
            "Search without query",
        )
    },
    "no reason in errors": {"errors: gives a reason"},
    "errors repeat the request": {"errors: repeats nothing of the request"},
    "the key is not checked": {
        "access: refuses a missing key with 401",
        "access: refuses a wrong key with 401",
        "access: refuses the beginning of the key with 401",
        "access: refuses an empty key with 401",
    },
    "the key is not checked for Search": {
        "access: refuses a missing key with 401",
        "access: refuses a wrong key with 401",
        "access: refuses the beginning of the key with 401",
        "access: refuses an empty key with 401",
    },
    "the beginning of a key suffices": {"access: refuses the beginning of the key with 401"},
    "X-Api-Key is not read": {"access: takes the key as X-Api-Key"},
    "403 instead of 401": {
        "access: refuses a missing key with 401",
        "access: refuses a wrong key with 401",
        "access: refuses the beginning of the key with 401",
        "access: refuses an empty key with 401",
    },
    "errors repeat the key": {"access: says neither the key nor what was sent for it"},
    "written before the key is checked": {"access: writes nothing without the key"},
    "DELETE does nothing": {"removal: a deleted user's memories are gone"},
}


@dataclass(frozen=True)
class Faulty:
    server: FaultyServer
    url: str
    client: Client


def our_server(directory: Path, *keys: str) -> ASGIApp:
    settings = load_settings({}, {"data_dir": str(directory), "embedder": "hashing"})
    return create_app(Engine.open(settings), api_keys=keys)


@contextmanager
def serving(app: ASGIApp) -> Iterator[str]:
    """The URL of a real server on a free port of the loopback."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # asyncio sets TCP_NODELAY on no other
    listener.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faulty]:
    """Our server with a key, behind faults that the tests switch on."""
    server = FaultyServer(our_server(tmp_path_factory.mktemp("data"), KEY))
    with serving(server) as url, Client(Target(url, KEY)) as client:
        yield Faulty(server, url, client)


def outcomes(client: Client, checks: Sequence[Check], options: Options = IN_TESTS) -> list[Outcome]:
    return list(run(Probe(client, options), checks))


def label(item: Check | Outcome) -> str:
    return f"{item.group}: {item.name}"


# --- our own server ---------------------------------------------------------------------------------------------------


def test_our_server_with_a_key_passes_every_check(faulty: Faulty) -> None:
    faulty.server.fault = None
    found = outcomes(faulty.client, CHECKS, UNHURRIED)
    assert [outcome for outcome in found if outcome.status is not Status.OK] == []


def test_our_server_without_a_key_passes_too_and_is_left_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    light = [check for check in CHECKS if check.group not in ("health", "load")] + [CHECKS[0]]
    monkeypatch.setattr("memserver.preflight.report.run", lambda probe: run(probe, light))
    with serving(our_server(tmp_path)) as url:
        result = CliRunner().invoke(cli, ["preflight", url, "--text-only", "--json"])
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    skipped = {check["reason"] for check in report["checks"] if check["status"] == "skip"}
    assert skipped == {"no --key given", "--text-only"}
    assert report["counts"]["fail"] == 0
    assert sum(report["counts"].values()) == len(report["checks"]) == len(light)
    assert report["remaining_users"] == []


# --- planted faults ---------------------------------------------------------------------------------------------------


def test_every_fault_of_the_catalogue_is_expected_somewhere() -> None:
    assert FOUND_BY.keys() == FAULTS.keys()


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_fails_the_checks_named_after_it_and_not_their_neighbours(name: str, faulty: Faulty) -> None:
    faulty.server.fault = FAULTS[name]()
    places = [place for place, check in enumerate(CHECKS) if label(check) in FOUND_BY[name]]
    assert len(places) == len(FOUND_BY[name])
    around = {place + step for place in places for step in (-1, 0, 1)}
    checks = [check for place, check in enumerate(CHECKS) if place in around and check.group != "load"]
    found = outcomes(faulty.client, checks)
    assert {label(outcome) for outcome in found if outcome.status is Status.FAIL} == FOUND_BY[name]


# --- the command ------------------------------------------------------------------------------------------------------


def test_a_failed_check_is_told_with_reason_and_fix_and_exits_with_1(faulty: Faulty, monkeypatch: pytest.MonkeyPatch) -> None:
    faulty.server.fault = FAULTS["202 for an Add"]()
    monkeypatch.setattr("memserver.preflight.report.run", lambda probe: run(probe, GROUPS[1].checks[:2]))
    result = CliRunner().invoke(cli, ["preflight", faulty.url, "--key", KEY])
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[1:5] == [
        "add",
        "  FAIL  answers 200, never 202",
        "        Add answered 202 instead of 200",
        "        fix: answer 200 after the work is done; the platform takes a 202 for an error",
    ]
    assert lines[5] == "  ok    says success: true"
    assert "1 ok, 1 fail, 0 skip" in lines
    assert KEY not in result.output


@pytest.mark.parametrize("url", ["http://127.0.0.1:{}", "127.0.0.1:{}", "nonsense", "http://[", "http://"])
def test_a_server_that_cannot_be_reached_is_no_failure_but_exits_with_2(url: str) -> None:
    result = CliRunner().invoke(cli, ["preflight", url.format(free_port())])
    assert result.exit_code == 2
    assert result.stderr.startswith("preflight stops: ")
    assert result.stdout == ""


def test_proxy_variables_are_ignored(faulty: Faulty, monkeypatch: pytest.MonkeyPatch) -> None:
    faulty.server.fault = None
    for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(variable, f"http://127.0.0.1:{free_port()}")
    with Client(Target(faulty.url)) as client:
        assert client.health().ok


# --- its parts --------------------------------------------------------------------------------------------------------


def test_labels_are_unique_and_every_check_tells_a_fix() -> None:
    assert len({label(check) for check in CHECKS}) == len(CHECKS)
    assert all(check.fix for check in CHECKS)


@pytest.mark.parametrize("text", ["é\U0001f642\0", "\ud83d", "a\udfffb", '\\"'])
def test_a_body_is_plain_utf8_in_which_only_surrogates_are_escaped(text: str) -> None:
    body = encoded({"text": text})
    assert json.loads(body.decode("utf-8")) == {"text": text}
    assert ("é".encode() in body) is ("é" in text)


def test_a_429_is_sent_again_after_its_retry_after() -> None:
    statuses = iter([429, 503, 200])
    sent = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request.content)
        return httpx.Response(next(statuses), headers={"Retry-After": "0"})

    with Client(Target("http://server"), httpx.MockTransport(answer)) as client:
        assert client.add({"a": 1}).status == 200
    assert sent == [b'{"a": 1}'] * 3


def test_users_that_no_delete_took_are_told() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(404 if b"%2F" in request.url.raw_path else 200)

    with Client(Target("http://server"), httpx.MockTransport(answer)) as client:
        probe = Probe(client, Options())
        plain, slashed = probe.family(":a", "/a")
        assert clean_up(probe) == [slashed]
        assert probe.users == [plain, slashed]


@pytest.mark.parametrize("gone", [True, False])
def test_a_server_that_is_gone_stops_the_run_and_one_that_refuses_connections_fails(gone: bool) -> None:
    healthy = iter([True, not gone])

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "GET" and next(healthy):
            return httpx.Response(200)
        raise httpx.ConnectError("refused")

    with Client(Target("http://server"), httpx.MockTransport(answer)) as client:
        found = run(Probe(client, IN_TESTS), [CHECKS[0], CHECKS[2]])
        assert next(found).status is Status.OK
        if gone:
            with pytest.raises(Unreachable, match="add: answers 200, never 202"):
                next(found)
        else:
            assert next(found).status is Status.FAIL


def test_the_modules_of_checks_are_all_in_the_run() -> None:
    folder = Path(__file__).parent.parent / "memserver" / "preflight"
    assert sum("GROUP = Group(" in path.read_text("utf-8") for path in folder.glob("*.py")) == len(GROUPS)
