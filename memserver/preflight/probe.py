"""What a check works with, and how it is registered."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar

from memserver.preflight.client import Client, Reply

T = TypeVar("T")
Hit = dict[str, Any]
Message = dict[str, Any]

QUESTION = "What is the name of my beagle?"
PAUSE = 0.2  # seconds between two looks for what should have been there at once


class Failed(Exception):
    """The server does not do what the check asks; the text is the reason."""


class Skipped(Exception):
    """The check does not apply; the text says why."""


@dataclass(frozen=True, slots=True)
class Options:
    """``looks``: how often checks of other things look for what was stored, so that late indexing fails one check only.

    ``health_seconds``: the longest that health may take.
    """

    text_only: bool = False
    skip_slow: bool = False
    looks: int = 25
    health_seconds: float = 2.0


@dataclass(frozen=True, slots=True)
class Check:
    """``fix`` tells what to change in a server that fails it."""

    group: str
    name: str
    fix: str
    run: Callable[[Probe], None] = field(repr=False)


class Group:
    """The checks of one file, in the order written."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.checks: list[Check] = []

    def check(self, name: str, fix: str) -> Callable[[Callable[[Probe], None]], Callable[[Probe], None]]:
        """Register a function under ``name``."""

        def register(run: Callable[[Probe], None]) -> Callable[[Probe], None]:
            self.checks.append(Check(self.name, name, fix, run))
            return run

        return register


class Probe:
    """The server with user ids of this run's own, which are remembered for the clean-up. For several threads."""

    def __init__(self, client: Client, options: Options) -> None:
        self.client = client
        self.options = options
        self.prefix = f"preflight-{uuid.uuid4().hex[:12]}"
        self.users: list[str] = []
        self._numbers = count()
        self._random = random.Random(self.prefix)

    # --- what may be needed -------------------------------------------------------------------------------------------

    def needs_key(self) -> str:
        """The key. Raises ``Skipped`` without one."""
        if not self.client.key:
            raise Skipped("no --key given")
        return self.client.key

    def needs_images(self) -> None:
        if self.options.text_only:
            raise Skipped("--text-only")

    def needs_time(self) -> None:
        if self.options.skip_slow:
            raise Skipped("--skip-slow")

    # --- names --------------------------------------------------------------------------------------------------------

    def user(self) -> str:
        """A user id that nothing used before."""
        return self.family("")[0]

    def family(self, *endings: str) -> list[str]:
        """User ids that differ in their endings only."""
        base = f"{self.prefix}:{next(self._numbers)}"
        users = [base + ending for ending in endings]
        self.users += users
        return users

    def request_id(self) -> str:
        return f"{self.prefix}:r{next(self._numbers)}"

    def word(self) -> str:
        """A name that occurs nowhere else, so that finding it proves where it came from."""
        return "".join(self._random.choice("bdfgklmnprstvz") + self._random.choice("aeiou") for _ in range(5)).capitalize()

    # --- calls --------------------------------------------------------------------------------------------------------

    def body(self, user: str, *messages: Message, **fields: object) -> dict[str, Any]:
        """An Add's body under a new request id; ``fields`` replace or join its own."""
        ids = {"request_id": self.request_id(), "user_id": user, "session_id": f"{self.prefix}:session"}
        return {**ids, "messages": list(messages), **fields}

    def store(self, user: str, *messages: Message, **fields: object) -> Reply:
        """Add. Raises ``Failed`` for anything but a 2xx."""
        return accepted("Add", self.client.add(self.body(user, *messages, **fields)))

    def remember(self, user: str) -> str:
        """Add a message that answers ``QUESTION``; the name in it."""
        word = self.word()
        self.store(user, turn(beagle(word)))
        return word

    def search(self, user: str, query: object = QUESTION, **fields: object) -> Reply:
        return self.client.search({"query": query, "user_id": user, "top_k": 100, **fields})

    def hits(self, user: str, query: object = QUESTION, **fields: object) -> list[Hit]:
        """The objects in ``data``. Raises ``Failed`` where there is no such array."""
        reply = accepted("Search", self.search(user, query, **fields))
        data = reply.json.get("data") if isinstance(reply.json, dict) else None
        if not isinstance(data, list):
            raise Failed('Search answers without an array "data" in a JSON object')
        return [hit for hit in data if isinstance(hit, dict)]

    def texts(self, user: str, query: object = QUESTION, **fields: object) -> str:
        """The contents as the answer model reads them: joined by newlines."""
        return "\n".join(map(text_of, self.hits(user, query, **fields)))

    def expect(self, user: str, *words: str, query: object = QUESTION, **fields: object) -> None:
        """Raises ``Failed`` unless one of several looks finds all ``words``."""
        for look in range(1, self.options.looks + 1):
            found = self.texts(user, query, **fields)
            missing = sum(word not in found for word in words)
            if not missing:
                return
            if look < self.options.looks:
                time.sleep(PAUSE)
        raise Failed(f"{missing} of {len(words)} texts that were added are not among the hits of a Search for them")

    def at_once(self, calls: Sequence[Callable[[], T]]) -> list[T]:
        """The results of all calls, made in as many threads."""
        with ThreadPoolExecutor(len(calls)) as threads:
            return [future.result() for future in [threads.submit(call) for call in calls]]


def turn(content: object, **fields: object) -> Message:
    return {"role": "user", "content": content, "timestamp": 1_684_549_260_000, **fields}


def beagle(word: str) -> str:
    return f"The name of my beagle is {word}."


def text_of(hit: Hit) -> str:
    """The text of a hit, "" for none."""
    content = hit.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "\n".join(text for text in texts if isinstance(text, str))


def accepted(call: str, reply: Reply) -> Reply:
    """The reply. Raises ``Failed`` unless it is a 2xx."""
    if not reply.ok:
        raise Failed(f"{call} answered {reply.status}")
    return reply


def expect_status(call: str, reply: Reply, *statuses: int) -> None:
    """Raises ``Failed`` for another status."""
    if reply.status not in statuses:
        raise Failed(f"{call} answered {reply.status} instead of {' or '.join(map(str, statuses))}")
