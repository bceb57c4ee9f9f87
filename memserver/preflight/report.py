"""The outcomes as a table for people or as JSON, and the exit code: 0 all well, 1 a check failed, 2 no server."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict

from memserver.preflight.client import Client, Target, Unreachable
from memserver.preflight.probe import Options, Probe
from memserver.preflight.runner import Outcome, Status, clean_up, run

Write = Callable[[str], None]


def preflight(target: Target, options: Options, as_json: bool, *, write: Write, complain: Write) -> int:
    """Run all checks and write the report, a table line by line or JSON at the end; the exit code."""
    outcomes: list[Outcome] = []
    try:
        with Client(target) as client:
            probe = Probe(client, options)
            try:
                for outcome in run(probe):
                    if not as_json:
                        write(_lines(outcome, new_group=not outcomes or outcomes[-1].group != outcome.group))
                    outcomes.append(outcome)
            except KeyboardInterrupt:
                clean_up(probe)
                raise
            remaining = clean_up(probe)
    except Unreachable as error:
        complain(f"preflight stops: {error}")
        return 2
    write(_json(outcomes, remaining) if as_json else _summary(outcomes, remaining, len(probe.users), probe.prefix))
    return int(any(outcome.status is Status.FAIL for outcome in outcomes))


def _lines(outcome: Outcome, *, new_group: bool) -> str:
    lines = [f"\n{outcome.group}"] if new_group else []
    lines.append(f"  {outcome.status.upper() if outcome.status is Status.FAIL else outcome.status:5} {outcome.name}")
    if outcome.status is Status.SKIP:
        lines[-1] += f" ({outcome.reason})"
    if outcome.status is Status.FAIL:
        lines += [f"        {outcome.reason}", f"        fix: {outcome.fix}"]
    return "\n".join(lines)


def _summary(outcomes: Sequence[Outcome], remaining: Sequence[str], users: int, prefix: str) -> str:
    counts = _counts(outcomes)
    lines = ["", ", ".join(f"{count} {status}" for status, count in counts.items())]
    if remaining:
        lines.append(
            f"{len(remaining)} of {users} users remain, DELETE /users/{{user_id}} did not take them: ids from {prefix}: on"
        )
    else:
        lines.append(f"all {users} users of this run were deleted again")
    return "\n".join(lines)


def _json(outcomes: Sequence[Outcome], remaining: Sequence[str]) -> str:
    report = {"counts": _counts(outcomes), "checks": [asdict(outcome) for outcome in outcomes], "remaining_users": remaining}
    return json.dumps(report, indent=2)


def _counts(outcomes: Sequence[Outcome]) -> dict[str, int]:
    counted = Counter(outcome.status for outcome in outcomes)
    return {str(status): counted[status] for status in Status}
