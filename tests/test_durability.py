"""A real server under concurrent traffic: nothing lost, nothing doubled, nothing leaked, also when it is killed meanwhile.

The traffic is that of a leaderboard run at its busiest: 64 Adds in flight over 40 users, 32 Searches beside them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock

import httpx
import pytest
from conftest import Serve, answering, free_port, memserver

from memserver.engine import Engine
from memserver.methods import load_settings
from memserver.types import SearchRequest

USERS = [f"user:{number}/é" for number in range(40)]
ADDS_PER_USER = 5
LEGS = ("bm25/chunk=1", "bm25/context=1", "bm25/session=1", "vectors/chunk=1")

Body = Mapping[str, object]


def adds() -> list[Body]:
    """Adds of two messages; each message has a word of its own, and names its user."""
    bodies: list[Body] = [
        {
            "request_id": f"{user}:{number}",
            "user_id": user,
            "session_id": f"session {number % 2}",
            "messages": [{"role": "user", "content": content, "timestamp": 1_700_000_000_000} for content in facts(user, number)],
        }
        for user in USERS
        for number in range(ADDS_PER_USER)
    ]
    random.Random(7).shuffle(bodies)
    return bodies


def facts(user: str, number: int) -> list[str]:
    return [f"zq{USERS.index(user)}x{number}x{place} was said by {user}" for place in range(2)]


@dataclass
class Traffic:
    """What a client sent and what it was told."""

    client: httpx.Client
    statuses: list[int] = field(default_factory=list)
    acknowledged: list[Body] = field(default_factory=list)
    leaks: list[str] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)
    enough: Event = field(default_factory=Event)

    def add(self, body: Body) -> None:
        answer = self.client.post("/add", json=body)
        with self.lock:
            self.statuses.append(answer.status_code)
            if answer.status_code == 200:
                self.acknowledged.append(body)
        if len(self.acknowledged) >= 60:
            self.enough.set()

    def search(self, user: str) -> None:
        answer = self.client.post("/search", json={"user_id": user, "query": "what was said by whom?", "top_k": 100})
        contents = [hit["content"] for hit in answer.json()["data"]]
        with self.lock:
            self.statuses.append(answer.status_code)
            self.leaks += [content for content in contents if not content.endswith(f"was said by {user}")]


@contextmanager
def traffic(url: str) -> Iterator[Traffic]:
    limits = httpx.Limits(max_connections=96)
    with httpx.Client(base_url=url, timeout=120, limits=limits) as client:
        yield Traffic(client)


def missing(data: Path, acknowledged: list[Body], leg: str) -> list[str]:
    """The acknowledged messages that a search by one leg alone does not find, or finds twice."""
    engine = Engine.open(load_settings({}, {"data_dir": str(data), "embedder": "hashing", "legs": leg}))
    try:
        faults = []
        for body in acknowledged:
            user, number = str(body["user_id"]), int(str(body["request_id"]).rpartition(":")[2])
            for fact in facts(user, number):
                hits = [str(hit.content) for hit in engine.search(SearchRequest(user, fact, 100))]
                if sum(hit.endswith(fact) for hit in hits) != 1:
                    faults.append(fact)
        return faults
    finally:
        engine.close()


@pytest.mark.parametrize("workers", ["1", "4"])
def test_concurrent_adds_and_searches_all_succeed_and_stay_apart(serve: Serve, tmp_path: Path, workers: str) -> None:
    bodies = adds()
    with traffic(serve(WORKERS=workers)) as seen, ThreadPoolExecutor(64) as adding, ThreadPoolExecutor(32) as searching:
        jobs = [adding.submit(seen.add, body) for body in bodies]
        jobs += [searching.submit(seen.search, user) for user in USERS * 3]
        for job in jobs:
            job.result()
        assert set(seen.statuses) == {200}
        assert seen.leaks == []
        for user in USERS:
            answer = seen.client.post("/search", json={"user_id": user, "query": user, "top_k": 100}).json()
            assert len(answer["data"]) == 2 * ADDS_PER_USER
    assert missing(tmp_path, bodies, "bm25/chunk=1") == []


def test_a_killed_server_has_all_that_it_acknowledged_and_replays_add_nothing(tmp_path: Path) -> None:
    bodies = adds()
    settings = {"DATA_DIR": str(tmp_path), "EMBEDDER": "hashing"}
    port = free_port()
    process = memserver("serve", "--port", port, **settings)
    with traffic(answering(port, process)) as seen, ThreadPoolExecutor(64) as adding, ThreadPoolExecutor(32) as searching:
        for body in bodies:
            adding.submit(seen.add, body)
        for user in USERS * 3:
            searching.submit(seen.search, user)
        assert seen.enough.wait(60)
        process.kill()
    process.communicate()
    acknowledged = list(seen.acknowledged)
    assert 60 <= len(acknowledged) < len(bodies)
    assert seen.leaks == []
    assert {leg: missing(tmp_path, acknowledged, leg) for leg in LEGS} == {leg: [] for leg in LEGS}

    process = memserver("serve", "--port", port, **settings)
    try:
        with traffic(answering(port, process)) as again, ThreadPoolExecutor(16) as adding:
            list(adding.map(again.add, [*bodies, *acknowledged]))  # the platform delivers anew what it may have lost, and more
            assert set(again.statuses) == {200}
            for user in USERS:
                answer = again.client.post("/search", json={"user_id": user, "query": user, "top_k": 100}).json()
                assert len(answer["data"]) == 2 * ADDS_PER_USER
            conflict = again.client.post("/add", json={**bodies[0], "messages": []})
            assert conflict.status_code == 409
    finally:
        process.terminate()
        process.communicate()
