"""One user: a giant, one whose Adds come in another order, one who asks the same again and again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from itertools import pairwise
from operator import ne
from random import Random

from benchmark.author import Add, Author
from benchmark.outcome import Outcome
from benchmark.server import serving
from benchmark.soak_plan import Plan
from benchmark.stats import percentiles
from benchmark.traffic import Traffic

GIANT_ADDS, GIANT_MESSAGES, GIANT_SEARCHES = 1_112, 2_500, 249
GIANT_LONG = 0.826  # of the messages, which makes 16.4 million characters
ORDERED_ADDS = 60
QUERIES = 20
REPEATS = 50
IN_FLIGHT = 16
MIB = 2**20


def giant(plan: Plan) -> Outcome:
    """The largest user that was seen on the platform: its Adds one after the other, then its Searches."""
    author = Author(plan.seed, long=GIANT_LONG)
    user, chance = author.user(0), Random(plan.seed)
    until = [number * GIANT_MESSAGES // GIANT_ADDS for number in range(_sized(GIANT_ADDS, plan) + 1)]
    adds = (author.add(user, number, after - before) for number, (before, after) in enumerate(pairwise(until)))
    with serving(plan.folder, plan.settings) as server, closing(Traffic(author, server.url)) as traffic:
        messages = characters = 0
        add_ms, search_ms = [], []
        for add in adds:
            messages, characters = messages + len(add.texts), characters + sum(map(len, add.texts))
            add_ms.append(_ms(partial(traffic.add, add)))
        for _ in range(_sized(GIANT_SEARCHES, plan)):
            search_ms.append(_ms(partial(traffic.search, user, author.query(chance))))
        resident, gone = server.resident(), server.gone()
    adding, searching, seconds = percentiles(add_ms), percentiles(search_ms[1:]), sum(add_ms) / 1000
    figures = {
        **{f"add_ms_{name}": value for name, value in adding.items()},
        **{f"search_ms_{name}": value for name, value in searching.items()},
        "first_search_ms": search_ms[0],
        "add_seconds": seconds,
        "resident_bytes": resident,
    }
    detail = (
        f"{len(add_ms):,} Adds, {messages:,} messages, {characters / 1e6:.1f} million characters in {seconds:.0f} s;"
        f" ms an Add: {_told(adding)}; first Search {search_ms[0]:,.0f}, then {_told(searching)}; RSS {resident / MIB:,.0f} MiB"
    )
    return Outcome(detail, gone + traffic.problems, figures=figures)


def shuffle(plan: Plan) -> Outcome:
    """A user's Adds in order, shuffled, and many at once: the same hits in the same order, each time on a new database."""
    author = Author(plan.seed)
    adds = [author.add(author.user(0), number) for number in range(_sized(ORDERED_ADDS, plan))]
    shuffled = Random(plan.seed).sample(adds, k=len(adds))
    expected = _hits(plan, "serial", adds, _one_by_one)
    found = {"shuffled": _hits(plan, "shuffled", shuffled, _one_by_one), "at once": _hits(plan, "at once", shuffled, _at_once)}
    differing = {how: sum(map(ne, hits, expected)) for how, hits in found.items()}
    problems = [f"{count} of {QUERIES} searches differ when Adds come {how}" for how, count in differing.items() if count]
    return Outcome(f"{len(adds)} Adds in 3 orders, {QUERIES} searches of each", problems, rounds=3)


def _hits(plan: Plan, name: str, adds: Sequence[Add], send: Callable[[Traffic, Sequence[Add]], None]) -> list[list[str]]:
    """Ids for each query, after these Adds on a server of their own."""
    author, chance = Author(plan.seed), Random(plan.seed)
    with serving(plan.folder / name, plan.settings) as server, closing(Traffic(author, server.url)) as traffic:
        send(traffic, adds)
        return [[hit["id"] for hit in traffic.search(author.user(0), author.query(chance))] for _ in range(QUERIES)]


def _one_by_one(traffic: Traffic, adds: Sequence[Add]) -> None:
    for add in adds:
        traffic.add(add)


def _at_once(traffic: Traffic, adds: Sequence[Add]) -> None:
    with ThreadPoolExecutor(IN_FLIGHT) as pool:
        list(pool.map(traffic.add, adds))


def repeat(plan: Plan) -> Outcome:
    """Every answer to the same search is the same, byte for byte, also after a restart."""
    author = Author(plan.seed)
    user = author.user(0)
    with serving(plan.folder, plan.settings) as server, closing(Traffic(author, server.url)) as traffic:
        _at_once(traffic, [author.add(user, number) for number in range(_sized(ORDERED_ADDS, plan))])
        query = author.query(Random(plan.seed))
        answers = {traffic.answer(user, query) for _ in range(REPEATS)}
        server.stop()
        server.start()
        answers |= {traffic.answer(user, query) for _ in range(REPEATS)}
        if len(answers) > 1:
            traffic.note(f"{len(answers)} different answers to one search")
    return Outcome(f"one search {REPEATS} times, and as often after a restart: {len(answers)} answer", traffic.problems)


def _sized(full: int, plan: Plan) -> int:
    return max(2, round(full * plan.size))


def _ms(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - started)


def _told(times: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:,.0f}" for name, value in times.items() if name != "n")
