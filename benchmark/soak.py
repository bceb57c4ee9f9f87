"""``python -m benchmark.soak``: a real server under load for as long as wanted, and users that are out of the ordinary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from benchmark.command import AsJson, assignments, failures
from benchmark.command import Set as Setting
from benchmark.outcome import Outcome, tell
from benchmark.soak_load import load
from benchmark.soak_plan import Plan
from benchmark.soak_scenarios import giant, repeat, shuffle


class Scenario(StrEnum):
    """What is done."""

    LOAD = "load"
    GIANT = "giant"
    SHUFFLE = "shuffle"
    REPEAT = "repeat"


SCENARIOS: Mapping[Scenario, Callable[[Plan], Outcome]] = {
    Scenario.LOAD: load,
    Scenario.GIANT: giant,
    Scenario.SHUFFLE: shuffle,
    Scenario.REPEAT: repeat,
}

app = typer.Typer(add_completion=False)


@app.command()
def main(
    scenario: Annotated[list[Scenario] | None, typer.Option(help="May be given several times (default: load).")] = None,
    minutes: Annotated[float, typer.Option(min=0.05, help="How long the load lasts.")] = 10.0,
    adds: Annotated[int, typer.Option(min=1, help="Adds in flight at once.")] = 64,
    searches: Annotated[int, typer.Option(min=1, help="Searches in flight at once.")] = 32,
    users: Annotated[int, typer.Option(min=1, help="Users written to at once; a full one makes room for the next.")] = 40,
    workers: Annotated[int, typer.Option(min=1, help="Server processes.")] = 1,
    seed: Annotated[int, typer.Option(help="Of the contents and of what comes when.")] = 0,
    embedder: Annotated[str, typer.Option(help="Embedder of the server.")] = "hashing",
    given: Setting = None,
    as_json: AsJson = False,
) -> None:
    """Exit code 1 if anything failed, leaked, was lost, grew or came out in another order."""
    outcomes: dict[str, Outcome] = {}
    with failures("soak"), TemporaryDirectory(prefix="memserver-soak-") as directory:
        changed = {name.upper(): value for name, value in assignments(given or []).items()}
        settings = {"EMBEDDER": embedder, "WORKERS": str(workers), **changed}
        for name in scenario or [Scenario.LOAD]:
            typer.echo(f"{name} ...", err=True)
            outcomes[name] = SCENARIOS[name](Plan(Path(directory) / name, settings, minutes, adds, searches, users, seed))
    tell(outcomes, as_json=as_json)


if __name__ == "__main__":
    app()
