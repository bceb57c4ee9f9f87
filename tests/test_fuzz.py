"""What nobody should send: bodies made from our own OpenAPI document, bodies at random, an image that would be huge."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import CheckFunction, not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance, status_code_conformance

from benchmark.fuzz import bodies
from benchmark.fuzz_bodies import BOMBS, HUGE_EVERY, KINDS, MARK, sent
from benchmark.server import serving

DOCUMENTED: list[CheckFunction] = [not_a_server_error, status_code_conformance, content_type_conformance]
CHECKS: Mapping[GenerationMode, list[CheckFunction]] = {
    GenerationMode.POSITIVE: [*DOCUMENTED, response_schema_conformance],
    GenerationMode.NEGATIVE: DOCUMENTED,  # an Add's answer echoes a session_id of whatever type it came
}
"""None that wants bad input refused: what can be read is read."""

EDGE = 100_000  # pixels: 40 GB once decoded


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("server"), {"EMBEDDER": "hashing"}) as server:
        yield server.url


@pytest.mark.parametrize(
    ("operation", "mode"),
    [
        ("POST /add", GenerationMode.POSITIVE),
        ("POST /add", GenerationMode.NEGATIVE),
        ("POST /search", GenerationMode.POSITIVE),
        ("POST /search", GenerationMode.NEGATIVE),
        ("DELETE /users/{user_id}", GenerationMode.POSITIVE),
    ],
)
def test_what_the_openapi_document_allows_or_forbids_gets_answers_that_it_documents(
    url: str, operation: str, mode: GenerationMode
) -> None:
    method, path = operation.split()
    cases = schemathesis.openapi.from_url(f"{url}/openapi.json")[path][method].as_strategy(generation_mode=mode)

    @settings(max_examples=15, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(cases)
    def called(case: schemathesis.Case[Any]) -> None:
        case.call_and_validate(checks=CHECKS[mode])

    called()


def test_random_bodies_make_no_failure_and_leave_no_trace_in_the_log(tmp_path: Path) -> None:
    assert bodies(tmp_path, seed=0, count=300).problems == []


def test_a_body_follows_from_seed_and_number_and_every_kind_comes() -> None:
    requests = [sent(0, number) for number in range(300)]

    assert requests == [sent(0, number) for number in range(300)]
    assert {request.kind for request in requests} == set(KINDS)
    assert {request.path for request in requests} == {"/add", "/search"}
    assert sent(1, 0) != sent(0, 0)


def test_some_bodies_are_huge() -> None:
    longest = max(map(len, BOMBS.values()))

    assert len(sent(0, HUGE_EVERY - 1).body) > 10 * 2**20 - longest


def test_an_image_that_claims_to_be_huge_is_stored_or_dropped_and_never_unpacked(url: str) -> None:
    image = f"data:image/png;base64,{base64.b64encode(huge_png()).decode()}"
    content = [{"type": "text", "text": MARK}, {"type": "image_url", "image_url": {"url": image}}]
    with httpx.Client(base_url=url) as client:
        add = {"request_id": "r", "user_id": "u", "session_id": "s", "messages": [{"role": "user", "content": content}]}
        assert client.post("/add", json=add).status_code == 200

        (hit,) = client.post("/search", json={"user_id": "u", "query": MARK, "top_k": 100}).json()["data"]

    shown = json.dumps(hit["content"])
    assert MARK in shown
    assert ("image_url" in shown) == (image in shown)


def huge_png() -> bytes:
    """A PNG of 100,000 x 100,000 pixels as its header has it, with one line of them."""
    header = struct.pack(">IIBBBBB", EDGE, EDGE, 8, 6, 0, 0, 0)
    chunks = {b"IHDR": header, b"IDAT": zlib.compress(bytes(1 + 4 * EDGE)), b"IEND": b""}
    framed = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks.items()
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(framed)
