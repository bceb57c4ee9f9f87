"""Faults of the embedder, on a server that asks an endpoint which fails in every way that endpoints do."""

from __future__ import annotations

import httpx

from benchmark.endpoint import FAULTS, HANGS, TIMEOUT, Endpoint
from benchmark.endpoint import serving as endpoint
from benchmark.outcome import Outcome
from benchmark.server import Server
from benchmark.traffic import Traffic
from benchmark.trial import Trial, integrity

LEXICAL = "bm25/chunk=1"


def embedder(trial: Trial) -> Outcome:
    """Each fault in turn: an Add gets 503 and leaves nothing, the rest of the service is alive, then the Add succeeds."""
    with endpoint() as asked, trial.server(asked.settings(OPENAI_TIMEOUT=str(TIMEOUT), LEGS=LEXICAL)) as (server, traffic):
        for number, fault in enumerate(FAULTS):
            _suffer(fault, asked, server, traffic, number)
        traffic.problems += integrity(server.database) + traffic.audit()
        server.kill()
        server.start(LEGS="vectors/chunk=1")
        asked.behave(HANGS)
        user = traffic.author.user(0)
        traffic.search(user, "who said it?", expected=(503,))
        asked.release()
        traffic.search(user, "who said it?")
    return Outcome(f"an endpoint that {', '.join(FAULTS)}", traffic.problems, len(FAULTS))


def _suffer(fault: str, asked: Endpoint, server: Server, traffic: Traffic, number: int) -> None:
    user = traffic.author.user(0)
    stored, refused = (traffic.author.add(user, 2 * number + place) for place in range(2))
    traffic.add(stored)
    asked.behave(fault)
    traffic.add(refused, expected=(503,))
    traffic.add(stored)  # again: what is stored needs no embedder
    traffic.problems += traffic.audit()
    if not httpx.get(f"{server.url}/health", trust_env=False).is_success:
        traffic.note(f"an endpoint that {fault}: /health is down")
    asked.release()
    traffic.add(refused)
