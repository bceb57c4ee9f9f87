"""Ends of the process: killed at any moment, or asked to stop."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from random import Random

from benchmark.author import Add
from benchmark.endpoint import serving as endpoint
from benchmark.outcome import Outcome
from benchmark.server import Server
from benchmark.traffic import NO_ANSWER, Traffic
from benchmark.trial import Trial, integrity

USERS = 12
ADDS = 3  # of a user in a round
ADDING, SEARCHING = 24, 8  # requests in flight
AUDIT_EVERY = 50  # rounds
KILL_WITHIN = 0.02  # seconds after the Add that is waited for, so that the moment is no boundary between two requests
PATIENCE = 120.0  # seconds
FIRST = 5  # hits among which a message must be when its own text is searched
ALONE = ("bm25/chunk=1", "vectors/chunk=1")
IN_FLIGHT = 8


def kill(trial: Trial) -> Outcome:
    """SIGKILL under load, again and again on the same data; then every Add is sent once more."""
    chance = Random(trial.seed)
    sent: list[Add] = []
    with trial.server(started=False) as (server, traffic):
        for number in range(trial.rounds):
            server.start()
            if number % AUDIT_EVERY == AUDIT_EVERY - 1:
                traffic.problems += integrity(server.database) + traffic.audit()
            adds = trial.adds(USERS, ADDS, first=number * ADDS)
            sent += adds
            _loaded_and_killed(server, traffic, adds, chance)
        acknowledged = len(traffic.acknowledged)
        server.start()
        traffic.problems += traffic.audit()
        _add_all(traffic, sent)
        traffic.problems += integrity(server.database) + traffic.audit()
        for leg in ALONE:
            server.kill()
            server.start(LEGS=leg)
            if unfound := _unfound(traffic, sent):
                traffic.problems.append(f"{leg} alone does not find {unfound} messages by their own text")
    detail = f"{acknowledged} of {len(sent)} Adds had their 200 before a kill; all sent again, then searched by each leg alone"
    return Outcome(detail, traffic.problems, trial.rounds)


def _loaded_and_killed(server: Server, traffic: Traffic, adds: list[Add], chance: Random) -> None:
    enough = len(traffic.acknowledged) + chance.randrange(1, len(adds))
    with ThreadPoolExecutor(ADDING) as adding, ThreadPoolExecutor(SEARCHING) as searching:
        for add in adds:
            adding.submit(traffic.add, add, (200, NO_ANSWER))
            searching.submit(traffic.search, add.user, traffic.author.query(chance), expected=(200, NO_ANSWER))
        if not traffic.await_acknowledged(enough, PATIENCE):
            traffic.note(f"no answers within {PATIENCE:.0f} seconds")
        time.sleep(chance.uniform(0, KILL_WITHIN))
        server.kill()


def _add_all(traffic: Traffic, adds: Iterable[Add]) -> None:
    with ThreadPoolExecutor(ADDING) as pool:
        list(pool.map(traffic.add, adds))


def _unfound(traffic: Traffic, adds: list[Add]) -> int:
    with ThreadPoolExecutor(SEARCHING) as pool:
        return sum(pool.map(lambda add: traffic.unfound([add], FIRST), adds))


def drain(trial: Trial) -> Outcome:
    """SIGTERM while Adds wait for the embedder: they get their 200, and are there after a restart."""
    adds = trial.adds(IN_FLIGHT, 1)
    texts = sum(len(add.texts) for add in adds)
    with endpoint() as embedder, trial.server(embedder.settings(OPENAI_BATCH_SIZE="1", OPENAI_CONCURRENCY=str(texts))) as run:
        server, traffic = run
        with embedder.held(), ThreadPoolExecutor(IN_FLIGHT) as pool:
            answers = [pool.submit(traffic.add, add) for add in adds]
            if not embedder.await_waiting(texts, PATIENCE):
                traffic.note("the Adds did not reach the embedder")
            server.terminate()
            embedder.release()
            for answer in answers:
                answer.result()
        code = server.ended()
        if code not in (0, -signal.SIGTERM):  # a single process ends by the signal itself, as a shell expects
            traffic.note(f"exit code {code}")
        server.start()
        traffic.problems += integrity(server.database) + traffic.audit()
    return Outcome(
        f"{len(adds)} Adds in flight, {len(traffic.acknowledged)} answered and kept, exit code {code}", traffic.problems
    )
