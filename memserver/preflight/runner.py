"""All checks in their order, one after the other, and the clean-up after them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from memserver.preflight import (
    access,
    add,
    errors,
    health,
    idempotency,
    images,
    isolation,
    load,
    odd_input,
    removal,
    search,
    texts,
)
from memserver.preflight.client import NoAnswer, Unreachable
from memserver.preflight.probe import Check, Failed, Probe, Skipped

GROUPS = (
    health.GROUP,
    add.GROUP,
    search.GROUP,
    isolation.GROUP,
    odd_input.GROUP,
    texts.GROUP,
    images.GROUP,
    idempotency.GROUP,
    errors.GROUP,
    access.GROUP,
    load.GROUP,
    removal.GROUP,
)
CHECKS: tuple[Check, ...] = tuple(check for group in GROUPS for check in group.checks)


class Status(StrEnum):
    OK = "ok"
    FAIL = "fail"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a check; ``reason`` says why it failed or was skipped, ``fix`` what to do about a failure."""

    group: str
    name: str
    status: Status
    reason: str
    fix: str
    seconds: float


def run(probe: Probe, checks: Sequence[Check] = CHECKS) -> Iterator[Outcome]:
    """The outcomes, each as soon as it is there. Raises ``Unreachable``, with the name of the check that came so far."""
    for check in checks:
        start = time.monotonic()
        try:
            status, reason = _outcome(check, probe)
        except Unreachable as error:
            raise Unreachable(f"{error} It was called for the check {check.group}: {check.name}") from None
        fix = check.fix if status is Status.FAIL else ""
        yield Outcome(check.group, check.name, status, reason, fix, round(time.monotonic() - start, 3))


def _outcome(check: Check, probe: Probe) -> tuple[Status, str]:
    try:
        check.run(probe)
    except Skipped as skipped:
        return Status.SKIP, str(skipped)
    except (Failed, NoAnswer) as failure:
        return Status.FAIL, str(failure)
    except Unreachable as refusal:
        with suppress(NoAnswer):
            probe.client.health()  # raises too if the server is gone, not just out of connections
        return Status.FAIL, str(refusal)
    return Status.OK, ""


def clean_up(probe: Probe) -> list[str]:
    """Delete the users of the run where the server can; those of which something may remain.

    Raises ``Unreachable``.
    """
    remaining = []
    for user in probe.users:
        try:
            gone = probe.client.delete(user).ok
        except NoAnswer:
            gone = False
        if not gone:
            remaining.append(user)
    return remaining
