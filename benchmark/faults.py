"""``python -m benchmark.faults``: what a server keeps and says when the machine under it fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from benchmark.command import AsJson, assignments, failures
from benchmark.command import Set as Setting
from benchmark.errors import BenchError
from benchmark.fault_clock import clock
from benchmark.fault_crashes import drain, kill
from benchmark.fault_disk import disk_full, locked
from benchmark.fault_embedder import embedder
from benchmark.fault_files import header, page, shm_garbage, wal_truncated
from benchmark.outcome import Outcome, tell
from benchmark.trial import Trial

Fault = Callable[[Trial], Outcome]

FAULTS: Mapping[str, Fault] = {
    "kill": kill,
    "drain": drain,
    "disk-full": disk_full,
    "locked": locked,
    "wal-truncated": wal_truncated,
    "shm-garbage": shm_garbage,
    "header": header,
    "page": page,
    "embedder": embedder,
    "clock": clock,
}

app = typer.Typer(add_completion=False)


def chosen(only: str) -> Mapping[str, Fault]:
    """The faults named, separated by commas; all for none. Raises ``BenchError`` for an unknown one."""
    names = [name.strip() for name in only.split(",") if name.strip()] or list(FAULTS)
    if unknown := [name for name in names if name not in FAULTS]:
        raise BenchError(f"--only {', '.join(unknown)}: there are {', '.join(FAULTS)}")
    return {name: FAULTS[name] for name in names}


def attempt(fault: Fault, trial: Trial) -> Outcome:
    """The fault's outcome; a trial that could not be carried through is a problem like any other."""
    trial.folder.mkdir()
    try:
        return fault(trial)
    except BenchError as error:
        return Outcome("not carried through", [str(error)])


@app.command()
def main(
    only: Annotated[str, typer.Option(help=f"Some of {', '.join(FAULTS)}, separated by commas (default: all).")] = "",
    rounds: Annotated[int, typer.Option(min=1, help="Kills, and times that pages are damaged.")] = 200,
    seed: Annotated[int, typer.Option(help="Of the contents and the moments.")] = 0,
    embedder: Annotated[str, typer.Option(help="Embedder of the server, where the fault does not bring its own.")] = "hashing",
    given: Setting = None,
    as_json: AsJson = False,
) -> None:
    """Exit code 1 if anything was lost, doubled, leaked or wrongly said."""
    outcomes: dict[str, Outcome] = {}
    with failures("faults"), TemporaryDirectory(prefix="memserver-faults-") as directory:
        settings = {"EMBEDDER": embedder, **{name.upper(): value for name, value in assignments(given or []).items()}}
        for name, fault in chosen(only).items():
            typer.echo(f"{name} ...", err=True)
            outcomes[name] = attempt(fault, Trial(Path(directory) / name, seed, rounds, settings))
    tell(outcomes, as_json=as_json)


if __name__ == "__main__":
    app()
