"""``python -m benchmark.longmemeval --data FILE``: LongMemEval's session retrieval, measured through the product's own path."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from typing import Annotated

import typer

from benchmark.client import Memory, Mode, in_process, running
from benchmark.compare import DEPTH, Paired, compare, read_agentmemory
from benchmark.data import Case, load_cases
from benchmark.errors import BenchError
from benchmark.play import play
from benchmark.summary import Outcome, summarise, table
from memserver.errors import MemserverError

CACHE = Path.home() / ".cache" / "memserver-bench"

Progress = Callable[[int, int], None]
"""Told how many cases of how many are done."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def run(cases: Sequence[Case], memory: Memory, seed: int, concurrency: int, progress: Progress) -> list[Outcome]:
    """Play the cases, ``concurrency`` users at a time, each user's Adds one after another; outcomes in the order of the cases."""

    def outcome(case: Case) -> Outcome:
        return Outcome(case.id, case.type, case.abstention, case.gold, tuple(play(case, memory, seed)))

    outcomes: list[Outcome] = []
    with ThreadPoolExecutor(concurrency) as pool:
        for one in pool.map(outcome, cases):  # cancels the rest when one fails
            outcomes.append(one)
            progress(len(outcomes), len(cases))
    return outcomes


@app.command()
def main(
    data: Annotated[Path, typer.Option(help="The data set's own file (longmemeval_s*.json), plain or .gz.")],
    limit: Annotated[int | None, typer.Option(min=1, help="Play the first N cases only.")] = None,
    mode: Annotated[Mode | None, typer.Option(help="Legs of the in-process engine (default: hybrid).")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="KEY=VALUE, a setting of the in-process engine.")] = None,
    url: Annotated[str, typer.Option(help="Play against this running server, with its own settings.")] = "",
    api_key: Annotated[str, typer.Option(envvar="BENCH_API_KEY", help="The running server's key.")] = "",
    peer: Annotated[Path | None, typer.Option("--compare", help="agentmemory's result file, to pair questions with.")] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="How many cases (users) are played at once.")] = 4,
    seed: Annotated[int, typer.Option(help="Of the opaque user, session and request ids.")] = 0,
    cache: Annotated[Path, typer.Option(help="Folder where vectors are kept for the next run (in-process only).")] = CACHE,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line.")] = False,
) -> None:
    """Play LongMemEval through Add and Search, and print how well the gold sessions were found."""
    try:
        if url and (mode or set_):
            raise BenchError("--mode and --set are for the in-process engine; a running server (--url) has its own settings")
        overrides = _assignments(set_ or [])
        cases = load_cases(data, limit)
        rankings = read_agentmemory(peer) if peer else None
        with running(url, api_key) if url else in_process(mode or Mode.HYBRID, overrides, cache) as memory:
            product = memory.describe()
            outcomes = run(cases, memory, seed, concurrency, _progress())
    except (BenchError, MemserverError) as error:
        typer.echo(f"longmemeval: {error}", err=True)
        raise typer.Exit(2) from error
    summary = summarise(outcomes)
    conditions = {"mode": None if url else mode or Mode.HYBRID, "set": overrides, "url": url, "seed": seed, "product": product}
    report = {**summary.as_json(), "run": conditions}
    typer.echo(table(summary))
    if rankings is not None:
        paired = compare(outcomes, rankings)
        report["compare"] = asdict(paired)
        typer.echo(_verdict(paired))
    if as_json:
        typer.echo(json.dumps(report))


def _assignments(texts: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    if not all(key and equals for key, equals, _ in pairs):
        raise BenchError("--set wants KEY=VALUE, for example --set result_chars=0")
    return {key: value for key, _, value in pairs}


def _verdict(paired: Paired) -> str:
    counts = f"{paired.wins} wins, {paired.ties} ties, {paired.losses} losses"
    return f"\npaired on {paired.n} questions: {counts} (rank of the first gold session, beyond {DEPTH} counts as {DEPTH + 1})"


def _progress() -> Progress:
    started = monotonic()
    end = "\r" if sys.stderr.isatty() else "\n"

    def show(done: int, total: int) -> None:
        elapsed = monotonic() - started
        remaining = elapsed / done * (total - done)
        line = f"{done}/{total} cases, {elapsed:.0f} s, about {remaining:.0f} s left"
        print(f"{line:<60}", file=sys.stderr, end=end if done < total else "\n", flush=True)

    return show


if __name__ == "__main__":
    app()
