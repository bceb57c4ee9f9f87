"""What an operator learns of the requests, as log lines and as metrics, and what neither must hold."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx
import pytest
from conftest import Serve, free_port
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from memserver.app import create_app
from memserver.embedders.batcher import BatcherStats
from memserver.engine import Engine, Stats
from memserver.errors import StoreError
from memserver.logs import formatter
from memserver.methods import load_settings
from memserver.telemetry import NOBODY, Telemetry
from memserver.users import IndexStats

SECRET = "the cat is called Mitzi"
USER, REQUEST, SESSION, KEY = "user:of-4711", "request:of-4711", "session:of-4711", "swordfish"
IDS = {"request_id": REQUEST, "user_id": USER, "session_id": SESSION}
ADD = IDS | {"messages": [{"role": "user", "content": SECRET}, {"role": "user", "content": "and it sleeps"}]}
SEARCH = {"user_id": USER, "query": SECRET, "top_k": 1}
SEARCHES = 'memserver_requests_total{operation="search",status="200"}'
SALT = b"0123456789abcdef"


@pytest.fixture
def telemetry() -> Telemetry:
    return Telemetry(salt=SALT)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    """A client, with the right key, of a server on a store of its own."""
    engine = Engine.open(load_settings({}, {"data_dir": str(tmp_path), "embedder": "hashing"}))
    app = create_app(engine, api_keys=[KEY], telemetry=Telemetry(engine.stats, engine.salt))
    with TestClient(app, headers={"X-Api-Key": KEY}) as client:
        yield client


def samples(exposition: str) -> dict[str, float]:
    """Values by name and labels, as Prometheus writes them: ``name{label="value"}``."""
    found = [sample for family in text_string_to_metric_families(exposition) for sample in family.samples]
    return {sample.name + labelled(sample.labels): sample.value for sample in found}


def labelled(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{name}="{value}"' for name, value in sorted(labels.items())) + "}" if labels else ""


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, object]]:
    """The requests' lines as they would be written."""
    written = [formatter(plain=False).format(record) for record in caplog.records if record.name.startswith("memserver")]
    return [json.loads(line) for line in written]


# --- log lines --------------------------------------------------------------------------------------------------------


def test_an_add_its_replay_and_a_search_are_one_line_each_with_their_counts(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    size = len(client.post("/add", json=ADD).request.content)
    client.post("/add", json=ADD)
    client.post("/search", json=SEARCH)
    facts = ("operation", "status", "messages", "replay", "hits", "in_flight")
    told = [{name: line.get(name) for name in facts} for line in lines(caplog)]
    assert told == [
        {"operation": "add", "status": 200, "messages": 2, "replay": False, "hits": None, "in_flight": 1},
        {"operation": "add", "status": 200, "messages": 2, "replay": True, "hits": None, "in_flight": 1},
        {"operation": "search", "status": 200, "messages": None, "replay": None, "hits": 1, "in_flight": 1},
    ]
    assert lines(caplog)[0]["bytes_in"] == size
    assert all(line["event"] == "request" and line["level"] == "info" and line["ms"] >= 0 for line in lines(caplog))  # type: ignore[operator]


def test_no_line_and_no_metric_holds_content_ids_or_keys(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for path, body in (("/add", ADD), ("/search", SEARCH), ("/add", ADD | {"messages": SECRET}), ("/add/" + USER, ADD)):
        client.post(path, json=body)
        client.post(path, json=body, headers={"X-Api-Key": SECRET})
    written = json.dumps(lines(caplog)) + client.get("/metrics").text
    assert written.count("request") > 8
    assert [word for word in (SECRET, "sleeps", USER, REQUEST, SESSION, KEY) if word in written] == []


def test_one_user_has_one_hash_over_requests_and_restarts_and_another_in_another_database(tmp_path: Path) -> None:
    def user_hash(data: str, user: str = USER) -> str:
        engine = Engine.open(load_settings({}, {"data_dir": str(tmp_path / data), "embedder": "hashing"}))
        engine.close()
        return Telemetry(salt=engine.salt).user_hash(user)

    first = user_hash("a")
    assert len(first) == 16
    assert user_hash("a") == first
    assert len({first, user_hash("b"), user_hash("a", USER.upper())}) == 3


def test_without_a_salt_hashes_are_of_this_process_alone() -> None:
    assert Telemetry().user_hash(USER) != Telemetry().user_hash(USER)


def test_a_refused_request_says_why_and_a_failed_one_where(telemetry: Telemetry, caplog: pytest.LogCaptureFixture) -> None:
    with telemetry.follow("add") as exchange:
        exchange.status, exchange.error = 503, StoreError("free some space")
    try:
        raise KeyError(SECRET)
    except KeyError as error:
        with telemetry.follow("search") as exchange:
            exchange.status, exchange.error = 500, error
    refused, failed = lines(caplog)
    assert (refused["level"], refused["error"], refused["reason"]) == (
        "warning",
        "StoreError",
        "free some space",
    )
    assert (failed["level"], failed["error"]) == ("error", "KeyError")
    assert str(failed["place"]).startswith(f"{__name__}.test_a_refused")
    assert "reason" not in failed


def test_health_is_a_line_at_debug_only_and_a_wrong_path_a_warning(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    client.get("/health")
    client.post("/ad", json=ADD)
    assert [(line["operation"], line["status"], line["level"]) for line in lines(caplog)] == [
        ("health", 200, "debug"),
        ("unknown", 404, "warning"),
    ]


def test_a_request_that_ends_without_an_answer_is_counted_as_that(telemetry: Telemetry) -> None:
    with pytest.raises(ZeroDivisionError), telemetry.follow("add"):
        raise ZeroDivisionError
    told = samples(telemetry.exposition().decode())
    assert told[f'memserver_requests_total{{operation="add",status="{NOBODY}"}}'] == 1
    assert told["memserver_requests_in_flight"] == 0


# --- metrics ----------------------------------------------------------------------------------------------------------


def test_metrics_want_the_same_key(client: TestClient) -> None:
    assert client.get("/metrics", headers={"X-Api-Key": "wrong"}).status_code == 401
    assert client.get("/metrics").headers["content-type"].startswith("text/plain")


def test_metrics_count_requests_replays_texts_and_the_cache(client: TestClient) -> None:
    for path, body in (("/add", ADD), ("/add", ADD), ("/add", {}), ("/search", SEARCH), ("/search", SEARCH)):
        client.post(path, json=body)
    told = samples(client.get("/metrics").text)
    expected = {
        'memserver_requests_total{operation="add",status="200"}': 2,
        'memserver_requests_total{operation="add",status="422"}': 1,
        'memserver_requests_total{operation="search",status="200"}': 2,
        'memserver_request_seconds_count{operation="add"}': 2 + 1,
        'memserver_request_seconds_bucket{le="+Inf",operation="search"}': 2,
        "memserver_requests_in_flight": 0,
        "memserver_replays_total": 1,
        "memserver_embed_waiting": 0,
        "memserver_embedded_texts_total": 2 + 2,  # a text a message, and one a search
        "memserver_embed_batch_texts_sum": 2 + 2,
        "memserver_embed_batch_texts_count": 1 + 2,
        "memserver_index_users": 1,
        "memserver_index_hits_total": 1,
        "memserver_index_misses_total": 1,
        "memserver_index_evictions_total": 0,
    }
    assert {name: told[name] for name in expected} == expected
    assert told["memserver_index_bytes"] > 0
    assert told["memserver_database_bytes"] > 0
    assert told["process_resident_memory_bytes"] > 0
    assert any(name.startswith('memserver_build_info{version="') for name in told)


def test_metrics_read_the_engine_when_asked() -> None:
    batches = {1: 3, 2: 1, 100: 1, 500: 1}
    stats = Stats(BatcherStats(7, batches, embedded_bytes=4_000), IndexStats(2, 300, 4, 5, 6), database_bytes=12)
    told = samples(Telemetry(lambda: stats).exposition().decode())
    expected = {
        "memserver_embed_waiting": 7,
        "memserver_embedded_texts_total": 3 * 1 + 1 * 2 + 100 + 500,
        "memserver_embedded_tokens_total": 4_000 / 4,
        'memserver_embed_batch_texts_bucket{le="1"}': 3,
        'memserver_embed_batch_texts_bucket{le="64"}': 3 + 1,
        'memserver_embed_batch_texts_bucket{le="128"}': 3 + 1 + 1,
        'memserver_embed_batch_texts_bucket{le="+Inf"}': 3 + 1 + 1 + 1,
        "memserver_index_users": 2,
        "memserver_index_bytes": 300,
        "memserver_index_hits_total": 4,
        "memserver_index_misses_total": 5,
        "memserver_index_evictions_total": 6,
        "memserver_database_bytes": 12,
    }
    assert {name: told[name] for name in expected} == expected


def test_the_only_labels_are_the_operation_the_status_and_those_of_prometheus(client: TestClient) -> None:
    client.post("/add", json=ADD)
    families = text_string_to_metric_families(client.get("/metrics").text)
    labels = {label for family in families for sample in family.samples for label in sample.labels}
    assert labels == {"operation", "status", "le", "version"}


def test_with_a_port_of_their_own_metrics_want_no_key_and_the_main_port_has_none(serve: Serve) -> None:
    port = free_port()
    url = serve(METRICS_PORT=port, API_KEYS=KEY)
    httpx.post(f"{url}/search", json=SEARCH, headers={"X-Api-Key": KEY}).raise_for_status()
    told = samples(httpx.get(f"http://127.0.0.1:{port}/metrics").text)
    assert told[SEARCHES] == 1
    assert httpx.get(f"{url}/metrics", headers={"X-Api-Key": KEY}).status_code == 404


def test_each_worker_listens_at_the_first_port_that_is_free() -> None:
    ports = range(port := int(free_port()), port + 20)
    workers = [Telemetry(), Telemetry()]
    listening = [worker.listen("127.0.0.1", ports) for worker in workers]
    try:
        with workers[1].follow("search") as exchange:
            exchange.status = 200
        searches = [
            samples(httpx.get(f"http://127.0.0.1:{server.server_port}/metrics").text).get(SEARCHES, 0)
            for server in listening
            if server
        ]
        assert searches == [0, 1]
    finally:
        for server in listening:
            if server:
                server.shutdown()
                server.server_close()


def test_where_no_port_is_free_an_error_is_logged_and_nothing_is_raised(
    telemetry: Telemetry, caplog: pytest.LogCaptureFixture
) -> None:
    port = int(free_port())
    listening = telemetry.listen("127.0.0.1", range(port, port + 1))
    assert listening is not None
    try:
        assert telemetry.listen("127.0.0.1", range(port, port + 1)) is None
    finally:
        listening.shutdown()
        listening.server_close()
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "MEMSERVER_METRICS_PORT" in caplog.text
