"""What a trial of a server came to, and how it is told: a table for people, one JSON object for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import typer

SHOWN = 3  # problems that a table quotes; JSON has them all


@dataclass(frozen=True, slots=True)
class Outcome:
    """``detail`` says what was done, ``problems`` what went wrong: none, and it held. No text of a memory is in either."""

    detail: str
    problems: Sequence[str] = ()
    rounds: int = 1
    figures: Mapping[str, float] = field(default_factory=dict)

    @property
    def result(self) -> str:
        return "FAILED" if self.problems else "ok"


def tell(outcomes: Mapping[str, Outcome], *, as_json: bool) -> None:
    """The table, or the JSON object, by name. Raises ``typer.Exit`` with 1 if one failed."""
    if as_json:
        typer.echo(json.dumps({name: {"result": outcome.result, **asdict(outcome)} for name, outcome in outcomes.items()}))
    else:
        typer.echo(table(outcomes))
    if any(outcome.problems for outcome in outcomes.values()):
        raise typer.Exit(1)


def table(outcomes: Mapping[str, Outcome]) -> str:
    """A line each (name, rounds, result, detail), and a line for each of the first problems."""
    width = max(map(len, outcomes), default=0)
    lines = []
    for name, outcome in outcomes.items():
        lines.append(f"{name:<{width}}  {outcome.rounds:>6}  {outcome.result:<6}  {outcome.detail}")
        lines += [f"{'':<{width}}          {problem}" for problem in outcome.problems[:SHOWN]]
        if more := len(outcome.problems) - SHOWN:
            lines += [f"{'':<{width}}          and {more} more"] if more > 0 else []
    return "\n".join([f"{'name':<{width}}  rounds  result  detail", *lines])
