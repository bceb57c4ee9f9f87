"""The client of an embeddings endpoint: what it sends, what it accepts, when it tries again, what it never tells."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import numpy as np
import pytest
from embedder_helpers import KEY, Answer, Endpoint, serving

from memserver.embedders import openai
from memserver.embedders.hashing import Hashing
from memserver.embedders.openai import OpenAI, wait_after
from memserver.errors import ConfigError, EmbedderError


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with serving() as endpoint:
        yield endpoint


@pytest.fixture
def client(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAI]:
    monkeypatch.setenv("SOME_KEY", KEY)
    client = OpenAI(base_url=endpoint.url, model="some-model", dimensions=16, key_variable="SOME_KEY", attempts=3)
    client.load()
    with closing(client):
        yield client


@pytest.fixture(autouse=True)
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    naps: list[float] = []
    monkeypatch.setattr(openai, "sleep", naps.append)
    return naps


def item(index: int, vector: object) -> dict[str, Any]:
    return {"index": index, "embedding": vector}


def test_a_call_carries_model_texts_dimensions_and_key(endpoint: Endpoint, client: OpenAI) -> None:
    client.embed(["a", "b"])

    assert endpoint.requests == [{"path": "/v1/embeddings", "model": "some-model", "input": ["a", "b"], "dimensions": 16}]
    assert endpoint.headers[0]["authorization"] == f"Bearer {KEY}"


def test_vectors_are_put_in_order_and_to_unit_length(client: OpenAI) -> None:
    texts = [f"text {i}" for i in range(10)]

    np.testing.assert_allclose(client.embed(texts), Hashing(16).embed(texts), atol=1e-6)


def test_dimensions_are_not_sent_where_the_endpoint_refuses_them(endpoint: Endpoint) -> None:
    endpoint.planned.append(Answer(body={"data": [item(0, [3.0, 4.0])]}))
    client = OpenAI(base_url=endpoint.url, dimensions=2, send_dimensions=False, key_variable="")
    client.load()

    with closing(client):
        np.testing.assert_allclose(client.embed(["a"]), [[3 / 5, 4 / 5]], atol=1e-6)

    assert "dimensions" not in endpoint.requests[0]
    assert "authorization" not in endpoint.headers[0]


@pytest.mark.parametrize("key", [None, "", " ", "sk-ä", "sk-a\nb"])
def test_a_key_that_can_not_be_sent_stops_the_start_naming_the_variable(key: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOME_KEY", raising=False)
    if key is not None:
        monkeypatch.setenv("SOME_KEY", key)

    with pytest.raises(ConfigError, match="SOME_KEY") as caught:
        OpenAI(key_variable="SOME_KEY").load()

    assert "sk-" not in str(caught.value)


@pytest.mark.parametrize("status", [0, 408, 409, 425, 429, 500, 502, 503, 504])
def test_what_may_pass_is_tried_again(status: int, endpoint: Endpoint, client: OpenAI, naps: list[float]) -> None:
    endpoint.planned.extend([Answer(status), Answer(status)])

    assert client.embed(["a"]).shape == (1, 16)
    assert len(naps) == 2
    assert 1 / 2 <= naps[0] <= 1 <= naps[1] <= 2


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 413, 422])
def test_what_will_not_pass_fails_at_once(status: int, endpoint: Endpoint, client: OpenAI) -> None:
    endpoint.planned.append(Answer(status))

    with pytest.raises(EmbedderError, match=f"answered {status}; .*check|answered {status}; lower"):
        client.embed(["a"])

    assert len(endpoint.requests) == 1


def test_it_gives_up_after_the_last_attempt_without_a_wait(endpoint: Endpoint, client: OpenAI, naps: list[float]) -> None:
    endpoint.planned.extend([Answer(503)] * 3)

    with pytest.raises(EmbedderError, match="answered 503"):
        client.embed(["a"])

    assert (len(endpoint.requests), len(naps)) == (3, 2)


def test_a_retry_after_is_honoured(endpoint: Endpoint, client: OpenAI, naps: list[float]) -> None:
    endpoint.planned.append(Answer(429, {"Retry-After": "7"}))

    client.embed(["a"])

    assert naps == [7]


def test_a_wait_is_a_number_of_seconds_or_a_date_and_at_most_a_minute() -> None:
    soon = datetime.now(UTC) + timedelta(seconds=30)
    past = datetime.now(UTC) - timedelta(days=1)

    assert wait_after(1, "0") == 0
    assert wait_after(1, "3600") == 60
    assert 0 < wait_after(1, format_datetime(soon, usegmt=True)) <= 30
    assert wait_after(1, format_datetime(past, usegmt=True)) == 0


@pytest.mark.parametrize("header", ["", "soon", "-1", "²"])
def test_without_a_readable_retry_after_waits_double_up_to_a_minute(header: str) -> None:
    assert 4 / 2 <= wait_after(3, header) <= 4
    assert 60 / 2 <= wait_after(20, header) <= 60


@pytest.mark.parametrize(
    "body",
    [
        [],
        {"data": None},
        {"data": []},
        {"data": [item(0, [1.0] * 16)]},
        {"data": [item(0, [1.0] * 16), item(0, [1.0] * 16)]},
        {"data": [item(i, [1.0] * 16) for i in range(3)]},
        {"data": [item(0, [1.0] * 16), item(1, [1.0] * 15)]},
        {"data": [item(0, [1.0] * 16), item(1, [0.0] * 16)]},
        {"data": [item(0, [1.0] * 16), item(1, "words")]},
        {"data": [item(0, [1.0] * 16), {"embedding": [1.0] * 16}]},
    ],
)
def test_an_answer_that_does_not_fit_the_texts_is_refused(body: object, endpoint: Endpoint, client: OpenAI) -> None:
    endpoint.planned.append(Answer(body=body))

    with pytest.raises(EmbedderError, match="check model"):
        client.embed(["a", "b"])


@pytest.mark.parametrize("status", [200, 400, 500])
def test_an_error_tells_neither_key_nor_text_nor_answer(status: int, endpoint: Endpoint, client: OpenAI) -> None:
    endpoint.planned.extend([Answer(status, body={"error": f"{KEY} my diary"})] * 3)

    with pytest.raises(EmbedderError) as caught:
        client.embed(["my diary"])

    assert KEY not in repr(caught.value)
    assert "diary" not in repr(caught.value)
    assert caught.value.__cause__ is None


def test_an_endpoint_that_is_not_there_is_told_without_its_cause(client: OpenAI, endpoint: Endpoint) -> None:
    endpoint.planned.extend([Answer(0)] * 3)

    with pytest.raises(EmbedderError, match=r"no answer from the endpoint \(RemoteProtocolError\)") as caught:
        client.embed(["a"])

    assert caught.value.__context__ is None


def test_a_client_that_is_not_loaded_says_so() -> None:
    with pytest.raises(EmbedderError, match="load"):
        OpenAI().embed(["a"])


def test_a_window_with_its_prefix_never_exceeds_what_the_model_takes() -> None:
    prefix, text = "p" * 200, "𠀀 " * 5000
    bytes_per_character, most_tokens = 4, 8192

    longest = max(len(prefix) + end - start for start, end in OpenAI().windows(text, prefix))

    assert longest <= 2000
    assert longest * bytes_per_character <= most_tokens


def test_the_fingerprint_is_of_endpoint_model_and_dimensions() -> None:
    one = OpenAI()
    others = [OpenAI(base_url="http://elsewhere"), OpenAI(model="other"), OpenAI(dimensions=512)]

    assert len({one.fingerprint, *(other.fingerprint for other in others)}) == 4
    assert OpenAI(base_url=one.base_url + "/", batch_size=5).fingerprint == one.fingerprint


@pytest.mark.parametrize(
    "tunables",
    [{"dimensions": 0}, {"batch_size": 0}, {"concurrency": 0}, {"attempts": 0}, {"timeout": 0.0}, {"window_chars": 1}],
)
def test_tunables_that_make_no_sense_are_refused(tunables: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(tunables))):
        OpenAI(**tunables)


def test_a_base_url_without_scheme_is_refused() -> None:
    with pytest.raises(ValueError, match="base_url"):
        OpenAI(base_url="localhost:8080/v1")
