"""A client of a server under trial: what it sent, what it was told, and whether that is what the server then has."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Condition
from typing import Any

import httpx
import orjson

from benchmark.author import Add, Author

ALL = 1_000_000  # more than any user here has; a Search fills up to it with what no leg found
TIMEOUT = 300.0  # seconds
CONNECTIONS = 256
AUDITING = 8  # searches at once

NO_ANSWER = 0
"""Stands for the status where the connection ended without one."""


@dataclass(frozen=True, slots=True)
class Sent:
    """What is kept of an Add that was sent: ``ids`` of its hits."""

    user: str
    ids: tuple[str, ...]


class Traffic:
    """Sends Adds and Searches from many threads.

    ``problems``: statuses other than those expected, refusals that don't say when to come back, hits of another user.
    ``reasons``: what the refusals (503) said.

    A server may be killed and started again at ``url`` meanwhile.
    """

    def __init__(self, author: Author, url: str) -> None:
        self.author = author
        self.sent: dict[str, Sent] = {}
        self.acknowledged: set[str] = set()
        self.statuses: Counter[tuple[str, int]] = Counter()
        self.problems: list[str] = []
        self.reasons: set[str] = set()
        self._news = Condition()
        limits = httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)
        headers = {"Content-Type": "application/json"}
        self._client = httpx.Client(base_url=url, headers=headers, timeout=TIMEOUT, limits=limits, trust_env=False)

    def close(self) -> None:
        self._client.close()

    def add(self, add: Add, expected: Sequence[int] = (200,)) -> httpx.Response | None:
        """The answer, None if there was none."""
        with self._news:
            self.sent.setdefault(add.request, Sent(add.user, add.ids))
        answer = self._post("/add", add.body, expected)
        if answer is not None and answer.status_code == 200:
            with self._news:
                self.acknowledged.add(add.request)
                self._news.notify_all()
        return answer

    def search(self, user: str, query: str, top_k: int = 100, expected: Sequence[int] = (200,)) -> list[dict[str, Any]]:
        """The hits, none if there was no answer or an error; a hit without the user's sentinel is a problem."""
        answer = self._post("/search", orjson.dumps({"user_id": user, "query": query, "top_k": top_k}), expected)
        hits: list[dict[str, Any]] = answer.json()["data"] if answer is not None and answer.status_code == 200 else []
        sentinel = self.author.sentinel(user)
        strangers = sum(sentinel not in hit["content"] for hit in hits)
        if strangers:
            self.note(f"{strangers} of {len(hits)} hits are not the user's own")
        return hits

    def answered(self, path: str) -> int:
        """How many requests got an answer, whatever it was."""
        with self._news:
            return sum(count for (asked, status), count in self.statuses.items() if asked == path and status != NO_ANSWER)

    def await_acknowledged(self, count: int, seconds: float) -> bool:
        """Wait until so many Adds have their 200 in all; False if that takes longer."""
        with self._news:
            return self._news.wait_for(lambda: len(self.acknowledged) >= count, seconds)

    def note(self, problem: str) -> None:
        with self._news:
            self.problems.append(problem)

    def answer(self, user: str, query: str) -> bytes:
        """The body of the answer to a Search, empty if there was none."""
        answer = self._post("/search", orjson.dumps({"user_id": user, "query": query, "top_k": 100}), (200,))
        return answer.content if answer is not None else b""

    def audit(self) -> list[str]:
        """What is wrong with all that the server has of the users written to. It must show all (``RESULT_CHARS`` 0).

        Every Add that was acknowledged is there, every other one wholly or not at all, each message once, and nothing else.
        """
        requests: defaultdict[str, list[str]] = defaultdict(list)
        for request, sent in self.sent.items():
            requests[sent.user].append(request)
        with ThreadPoolExecutor(AUDITING) as pool:
            counts = sum(pool.map(self._audited, requests, requests.values()), Counter[str]())
        return [f"{count} {what}" for what, count in counts.items() if count]

    def _audited(self, user: str, requests: Sequence[str]) -> Counter[str]:
        found = Counter(hit["id"] for hit in self.search(user, self.author.sentinel(user), ALL))
        there = {request: found.keys() & set(self.sent[request].ids) for request in requests}
        whole = {request for request in requests if len(there[request]) == len(self.sent[request].ids)}
        return Counter(
            {
                "acknowledged Adds lost": len(self.acknowledged & set(requests) - whole),
                "Adds stored in part": sum(bool(there[request]) for request in set(requests) - whole),
                "messages stored twice": sum(count > 1 for count in found.values()),
                "messages that nobody sent": len(found.keys() - set().union(*there.values())),
            }
        )

    def unfound(self, adds: Iterable[Add], first: int) -> int:
        """How many texts are not among the ``first`` hits of a Search for themselves."""
        return sum(
            id not in [hit["id"] for hit in self.search(add.user, text, first)]
            for add in adds
            for id, text in zip(add.ids, add.texts, strict=True)
        )

    def _post(self, path: str, body: bytes, expected: Sequence[int]) -> httpx.Response | None:
        try:
            answer = self._client.post(path, content=body)
        except httpx.TransportError:
            answer = None
        status = answer.status_code if answer is not None else NO_ANSWER
        with self._news:
            self.statuses[path, status] += 1
            if status not in expected:
                self.problems.append(f"POST {path}: {status or 'no answer'} instead of {' or '.join(map(str, expected))}")
            if answer is not None and status == 503:
                self.reasons.add(answer.json()["detail"]["reason"])
                if not answer.headers.get("Retry-After", "").isdecimal():
                    self.problems.append(f"POST {path}: 503 without Retry-After")
        return answer
