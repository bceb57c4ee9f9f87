"""The load of a leaderboard run at its busiest, for as long as wanted: nothing may fail, leak, grow or get lost."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from threading import Event, Lock

from benchmark.author import Author
from benchmark.outcome import Outcome
from benchmark.server import Server, serving
from benchmark.soak_plan import Plan
from benchmark.traffic import Traffic
from benchmark.trial import integrity

MOST, LONG, BLANK = 20, 0.02, 0.05  # messages an Add; shares of those of 8,000 characters, and of blanks
REPLAYS = 0.1
ADDS_A_USER = 27  # then another user takes its place: as many as the platform's mean
MIB = 2**20
SETTLED_SECONDS = 120.0  # until every cache is full
GROWTH = 1.1
JUDGED_MINUTES = 5.0  # a shorter run says nothing about memory
SAMPLES = 60
BARS = "▁▂▃▄▅▆▇█"
LEVEL = {"INDEX_MEMORY_MB": "16"}  # full soon, so that memory has a level
WORDS = 70_000  # more than the server remembers the stems of, sent first for the same reason


@dataclass(frozen=True, slots=True)
class Sample:
    """At ``seconds`` from the start: resident memory in bytes, and Adds and Searches answered until then."""

    seconds: float
    resident: int
    adds: int
    searches: int


class Users:
    """Whose turn it is: one of ``active`` users, fewer than Adds in flight. One who is full makes room for the next."""

    def __init__(self, author: Author, active: int) -> None:
        self._author = author
        self._counts = dict.fromkeys(range(active), 0)
        self._lock = Lock()
        self._next = active

    def add(self, chance: Random) -> tuple[str, int]:
        """The user and number of an Add that was not sent before."""
        with self._lock:
            user = chance.choice(list(self._counts))
            number = self._counts[user]
            self._counts[user] += 1
            if number + 1 == ADDS_A_USER:
                del self._counts[user]
                self._counts[self._next] = 0
                self._next += 1
        return self._author.user(user), number

    def recent(self, chance: Random) -> str:
        """A user who is active or was lately."""
        return self._author.user(chance.randrange(max(0, self._next - 2 * len(self._counts)), self._next))


def load(plan: Plan) -> Outcome:
    """Adds and Searches in flight all the time; then every user's memories are asked for."""
    author = Author(plan.seed, MOST, LONG, BLANK)
    users, over = Users(author, plan.users), Event()
    with serving(plan.folder, {**LEVEL, **plan.settings}) as server, closing(Traffic(author, server.url)) as traffic:
        traffic.add(author.vocabulary(author.user(-1), WORDS))
        with ThreadPoolExecutor(plan.adds + plan.searches) as pool:
            jobs = [pool.submit(_adding, traffic, users, over, Random(f"{plan.seed} a{n}")) for n in range(plan.adds)]
            jobs += [pool.submit(_searching, traffic, users, over, Random(f"{plan.seed} s{n}")) for n in range(plan.searches)]
            try:
                samples = _samples(server, traffic, 60 * plan.minutes)
            finally:
                over.set()
            for job in jobs:
                job.result()
        gone = server.gone()
        server.kill()
        server.start(RESULT_CHARS="0", RERANKERS="", LEGS="bm25/chunk=1")
        traffic.problems += integrity(server.database) + traffic.audit()
    settled = next((one for one in samples if one.seconds >= SETTLED_SECONDS), samples[len(samples) // 5])
    growth = samples[-1].resident / settled.resident
    if plan.minutes >= JUDGED_MINUTES and growth > GROWTH:
        traffic.note(f"resident memory grew by {growth - 1:.0%} after minute 2")
    return Outcome(_detail(samples, growth, plan.folder), gone + traffic.problems, figures=_figures(samples, traffic, growth))


def _adding(traffic: Traffic, users: Users, over: Event, chance: Random) -> None:
    before = None
    while not over.is_set():
        if before is None or chance.random() >= REPLAYS:
            before = users.add(chance)
        traffic.add(traffic.author.add(*before))


def _searching(traffic: Traffic, users: Users, over: Event, chance: Random) -> None:
    while not over.is_set():
        traffic.search(users.recent(chance), traffic.author.query(chance))


def _samples(server: Server, traffic: Traffic, duration: float) -> list[Sample]:
    """Taken evenly over so many seconds."""
    started = time.monotonic()
    samples = []
    for number in range(SAMPLES + 1):
        time.sleep(max(0.0, started + duration * number / SAMPLES - time.monotonic()))
        seconds = time.monotonic() - started
        samples.append(Sample(seconds, server.resident(), traffic.answered("/add"), traffic.answered("/search")))
    return samples


def _detail(samples: Sequence[Sample], growth: float, folder: Path) -> str:
    last = samples[-1]
    size = sum(file.stat().st_size for file in (folder / "data").glob("memserver.db*")) / MIB
    lines = [
        f"{last.adds:,} Adds and {last.searches:,} Searches in {last.seconds:,.0f} s, a database of {size:,.0f} MiB",
        _plot("RSS, MiB", [one.resident / MIB for one in samples[1:]]) + f", {growth - 1:+.1%} since it settled",
        _plot("Adds/s", [(b.adds - a.adds) / (b.seconds - a.seconds) for a, b in pairwise(samples)]),
        _plot("Searches/s", [(b.searches - a.searches) / (b.seconds - a.seconds) for a, b in pairwise(samples)]),
    ]
    return "\n    ".join(lines)


def _plot(name: str, values: Sequence[float]) -> str:
    top = max(*values, 1e-9)
    bars = "".join(BARS[min(int(value / top * len(BARS)), len(BARS) - 1)] for value in values)
    return f"{name:<10} {bars} {min(values):,.0f} to {top:,.0f}, at last {values[-1]:,.0f}"


def _figures(samples: Sequence[Sample], traffic: Traffic, growth: float) -> dict[str, float]:
    last = samples[-1]
    return {
        "seconds": last.seconds,
        "adds": last.adds,
        "searches": last.searches,
        "acknowledged": len(traffic.acknowledged),
        "users": len({sent.user for sent in traffic.sent.values()}),
        "resident_bytes": last.resident,
        "resident_growth": growth - 1,
    }
