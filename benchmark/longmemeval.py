"""``python -m benchmark.longmemeval --data FILE``: LongMemEval's session retrieval, measured through the product's own path."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from typing import Annotated

import typer

from benchmark import command
from benchmark.client import Memory, mode_of
from benchmark.command import Conditions, Progress, Via
from benchmark.compare import paired
from benchmark.compare import table as comparison
from benchmark.data import Case, download, load_cases, statistics
from benchmark.errors import BenchError
from benchmark.evidence import CHARACTERS, JOINT, containment, within_characters
from benchmark.play import PLATFORM, Style, play
from benchmark.profiles import style
from benchmark.results import FOLDER, Result, describe_file, make_manifest, save, source_digest
from benchmark.state import State
from benchmark.stats import percentiles
from benchmark.summary import HEADLINE, Outcome, flat, latencies, summarise, table
from benchmark.systems import ours, read_system

NAME = "longmemeval"

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def run(
    cases: Sequence[Case],
    memory: Memory,
    seed: int,
    concurrency: int,
    progress: Progress,
    style: Style = PLATFORM,
    state: State | None = None,
) -> list[Outcome]:
    """Play the cases, ``concurrency`` users at a time, each user's Adds one after another; outcomes in the order of the cases.

    What ``state`` knows is not played again; what is played is added to it.
    """
    known = dict(state.known) if state else {}
    missing = [case for case in cases if case.id not in known]
    done = len(cases) - len(missing)

    def found(case: Case) -> Outcome:
        outcome = outcome_of(case, memory, seed, style)
        if state:
            state.add(outcome)
        return outcome

    with ThreadPoolExecutor(concurrency) as pool:
        for outcome in pool.map(found, missing):  # cancels the rest when one fails
            known[outcome.id] = outcome
            done += 1
            progress(done, len(cases))
    return [known[case.id] for case in cases]


def outcome_of(case: Case, memory: Memory, seed: int = 0, style: Style = PLATFORM) -> Outcome:
    """Play a case, and only then look at its gold, its marked turns and its answer."""
    played = play(case, memory, seed, style)
    seen = within_characters(played.contents, CHARACTERS)
    text = JOINT.join(played.contents[:seen])
    return Outcome(
        id=case.id,
        type=case.type,
        abstention=case.abstention,
        gold=case.gold,
        ranked=played.ranked,
        turns=played.turns,
        evidence=case.evidence,
        seen=seen,
        containment=None if case.abstention else containment(case.answer, text),
        add_ms=played.add_ms,
        search_ms=played.search_ms,
    )


def measure(
    data: Path,
    conditions: Conditions,
    *,
    seed: int = 0,
    cache: Path = command.CACHE,
    concurrency: int = 4,
    limit: int | None = None,
    types: Sequence[str] = (),
) -> Result:
    """A run under these conditions, which an interrupted one before it may have begun. Raises ``BenchError``, ``ConfigError``."""
    started = monotonic()
    every = load_cases(data)
    cases = select(every, limit, types)
    corpus = {**describe_file(data), **statistics(every)}
    how = style(conditions.profile)
    with conditions.open(cache) as memory:
        product = memory.describe()
        arguments = [*conditions.arguments, "--seed", str(seed)]
        condition = {"bench": NAME, "arguments": arguments, "code": source_digest(), "data": corpus, "product": product}
        # Whether a server's code is still the same can't be told.
        state = State(cache, condition) if conditions.via is Via.ENGINE else None
        resumed = sum(case.id in state.known for case in cases) if state else 0
        outcomes = run(cases, memory, seed, concurrency, command.progress("cases", resumed), how, state)
        # What the process holds says nothing of a run of which it did only a part.
        usage = {} if resumed else memory.usage()
        cached = memory.cached()
    if state:
        state.finish()
    questions = [outcome.question() for outcome in outcomes]
    summary = summarise(questions, seed)
    manifest = make_manifest(
        command=shlex.join(
            ["python", "-m", f"benchmark.{NAME}", "--data", data.name, *conditions.arguments, *_selection(limit, types, seed)]
        ),
        profile=conditions.label,
        mode=mode_of(product),
        via=conditions.via,
        product=product,
        data=corpus,
        seed=seed,
        seconds=monotonic() - started,
        partial=len(cases) < len(every),
        concurrency=concurrency,
        cached=cached,
        resumed=resumed,
    )
    return Result(
        benchmark=NAME,
        manifest=manifest,
        summary={"scored": summary.scored, "all": summary.all},
        intervals=summary.intervals,
        types=summary.types,
        performance={
            "add_ms": percentiles([time for outcome in outcomes for time in outcome.add_ms]),
            "search_ms": percentiles([outcome.search_ms for outcome in outcomes]),
            **usage,
        },
        questions=questions,
    )


def select(cases: Sequence[Case], limit: int | None, types: Sequence[str]) -> list[Case]:
    """The first ``limit`` cases of these types, all by default. Raises ``BenchError`` for a type that the file doesn't have."""
    known = {case.type for case in cases}
    if unknown := set(types) - known:
        raise BenchError(f"--types {', '.join(sorted(unknown))}: the file has {', '.join(sorted(known))}")
    return [case for case in cases if not types or case.type in types][:limit]


@app.command()
def main(
    data: Annotated[Path, typer.Option(help="The data set's own file (longmemeval_s_cleaned.json, ...), plain or .gz.")],
    fetch: Annotated[bool, typer.Option("--download", help="Fetch that file from the hub first, unless it is there.")] = False,
    limit: command.Limit = None,
    types: Annotated[str, typer.Option(help="Question types, separated by commas; such a run is not saved.")] = "",
    profile: command.ProfileOption = "default",
    mode: command.ModeOption = None,
    set_: command.Set = None,
    via: command.ViaOption = None,
    url: command.Url = "",
    api_key: command.ApiKey = "",
    peer: Annotated[Path | None, typer.Option("--compare", help="A result file, ours or a peer's, to pair with.")] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="How many cases (users) are played at once.")] = 4,
    seed: command.Seed = 0,
    cache: command.Cache = command.CACHE,
    folder: Annotated[Path, typer.Option("--save", help="Folder of the result file.")] = FOLDER,
    no_save: command.NoSave = False,
    as_json: command.AsJson = False,
) -> None:
    """Play LongMemEval through Add and Search, and print how well the gold sessions were found."""
    with command.failures(NAME, resumable=not url):
        conditions = command.conditions(profile, mode, set_, via, url, api_key)
        other = read_system(peer) if peer else None
        if fetch:
            download(data)
        chosen = [name.strip() for name in types.split(",") if name.strip()]
        result = measure(data, conditions, seed=seed, cache=cache, concurrency=concurrency, limit=limit, types=chosen)
        typer.echo(report(result))  # first: a file that can't be written must not cost what was measured
        saved = None if no_save or result.manifest["partial"] else save(result, folder)
        compared = paired(ours(result), other) if other else None
    if other and compared:
        typer.echo("\n" + comparison(conditions.label, other.name, compared))
    if saved:
        typer.echo(f"\nsaved as {saved}")
    elif result.manifest["partial"]:
        typer.echo("\na part of the questions: not saved")
    if as_json:
        typer.echo(
            json.dumps(
                flat(result, HEADLINE) | {"saved": str(saved) if saved else None, "compare": compared and asdict(compared)}
            )
        )


def report(result: Result) -> str:
    """The result for people: the table of the groups in per cent, and the times."""
    return "\n".join([table(result), "", *latencies(result)])


def _selection(limit: int | None, types: Sequence[str], seed: int) -> list[str]:
    return [
        *(["--limit", str(limit)] if limit else []),
        *(["--types", ",".join(types)] if types else []),
        *(["--seed", str(seed)] if seed else []),
    ]


if __name__ == "__main__":
    app()
