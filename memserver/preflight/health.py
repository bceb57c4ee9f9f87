"""Health: open, and quick whatever the load; the platform takes a slow one for a dead server."""

from __future__ import annotations

import time
from functools import partial

from memserver.preflight.client import Reply
from memserver.preflight.probe import Failed, Group, Probe, accepted, turn

ADDS = 8
CALLS = 5
PAUSE = 0.05  # seconds
GROUP = Group("health")


@GROUP.check("answers 2xx without a key", "serve health to GET without authentication, at --health-path")
def is_open(probe: Probe) -> None:
    accepted("Health", probe.client.health())


@GROUP.check("answers quickly while Adds run", "health must call neither the model nor the database, nor wait for a busy thread")
def is_quick(probe: Probe) -> None:
    filler = "Yesterday we talked about the weather, the garden and the neighbours. " * 8
    messages = [turn(f"{number}. {filler}") for number in range(20)]
    adds = [partial(probe.store, probe.user(), *messages) for _ in range(ADDS)]
    slowest = probe.at_once([*adds, partial(_slowest, probe)])[-1].seconds
    if slowest > probe.options.health_seconds:
        raise Failed(f"health took {slowest:.1f} s, more than {probe.options.health_seconds:g} s")


def _slowest(probe: Probe) -> Reply:
    """Of several calls of health, one after the other while the Adds are at work."""
    replies = []
    for _ in range(CALLS):
        time.sleep(PAUSE)
        replies.append(probe.client.health(probe.options.health_seconds))
    return max(replies, key=lambda reply: reply.seconds)
