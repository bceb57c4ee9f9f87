"""``python -m benchmark.sets``: the bench's own test sets (Chinese, code), message by message, through the product's own path."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Annotated

import typer

from benchmark import command
from benchmark.client import Memory, mode_of
from benchmark.command import Conditions
from benchmark.errors import BenchError
from benchmark.locomo_data import Conversation, statistics
from benchmark.locomo_play import Outcome, play, requests
from benchmark.memories import Timed
from benchmark.metrics import recall_any_at_k
from benchmark.play import PLATFORM
from benchmark.profiles import style
from benchmark.results import FOLDER, Question, Result, describe_file, make_manifest, save
from benchmark.sets_data import SETS, load_set
from benchmark.stats import percentiles
from benchmark.summary import flat, latencies, summarise, table

HEADLINE = ("any@1", "any@5", "recall@5", "recall@10", "mrr")
COLUMNS: Mapping[str, str] = {name: name for name in HEADLINE}

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def run(conversation: Conversation, memory: Memory, seed: int) -> list[Question]:
    """Play a set; the rows of its questions, in the order of the file."""
    return [_row(outcome) for outcome in play(conversation, memory, seed)]


def measure(
    data: Path, conditions: Conditions, *, seed: int = 0, cache: Path = command.CACHE, limit: int | None = None
) -> Result:
    """A run of the set in ``data``, named by its file, over its first ``limit`` questions.

    Raises ``BenchError`` and ``ConfigError``.
    """
    if style(conditions.profile) != PLATFORM:
        raise BenchError(
            f"--profile {conditions.profile}: its hits are whole sessions, but the evidence of these sets are messages"
        )
    started = monotonic()
    whole = load_set(data)
    conversation = replace(whole, questions=whole.questions[:limit])
    with conditions.open(cache) as memory:
        timed = Timed(memory, command.counter(requests(conversation), command.progress("requests")))
        questions = run(conversation, timed, seed)
        product, usage, cached = memory.describe(), memory.usage(), memory.cached()
    summary = summarise(questions, seed)
    options = [*(["--limit", str(limit)] if limit else []), *(["--seed", str(seed)] if seed else [])]
    return Result(
        benchmark=whole.id,
        manifest=make_manifest(
            command=shlex.join(["python", "-m", "benchmark.sets", "--only", whole.id, *conditions.arguments, *options]),
            profile=conditions.label,
            mode=mode_of(product),
            via=conditions.via,
            product=product,
            data={**describe_file(data), **statistics([whole])},
            seed=seed,
            seconds=monotonic() - started,
            partial=len(conversation.questions) < len(whole.questions),
            concurrency=1,
            cached=cached,
        ),
        summary={"scored": summary.scored, "all": summary.all},
        intervals=summary.intervals,
        types=summary.types,
        performance={"add_ms": percentiles(timed.add_ms), "search_ms": percentiles(timed.search_ms), **usage},
        questions=questions,
    )


@app.command()
def main(
    only: Annotated[str, typer.Option(help="Sets to play, separated by commas: " + ", ".join(SETS) + ".")] = "",
    limit: command.Limit = None,
    profile: command.ProfileOption = "default",
    mode: command.ModeOption = None,
    set_: command.Set = None,
    via: command.ViaOption = None,
    url: command.Url = "",
    api_key: command.ApiKey = "",
    seed: command.Seed = 0,
    cache: command.Cache = command.CACHE,
    folder: Annotated[Path, typer.Option("--save", help="Folder of the result files.")] = FOLDER,
    no_save: command.NoSave = False,
    as_json: command.AsJson = False,
) -> None:
    """Play each set through Add and Search, and print how well the messages that hold the evidence were found."""
    reports = {}
    with command.failures("sets"):
        conditions = command.conditions(profile, mode, set_, via, url, api_key)
        for name in choose(only):
            print(name, file=sys.stderr, flush=True)
            result = measure(SETS[name], conditions, seed=seed, cache=cache, limit=limit)
            typer.echo(f"{name}\n\n{report(result)}\n")  # first: a file that can't be written must not cost what was measured
            saved = None if no_save or result.manifest["partial"] else save(result, folder)
            if saved:
                typer.echo(f"saved as {saved}\n")
            elif result.manifest["partial"]:
                typer.echo("a part of the questions: not saved\n")
            reports[name] = flat(result, HEADLINE) | {"saved": str(saved) if saved else None}
    if as_json:
        typer.echo(json.dumps(reports))


def choose(only: str) -> list[str]:
    """The sets to play, all by default; ``only`` is names with commas between. Raises ``BenchError``."""
    wanted = {name.strip() for name in only.split(",") if name.strip()}
    if unknown := wanted - SETS.keys():
        raise BenchError(f"no set {', '.join(sorted(unknown))}: there are {', '.join(SETS)}")
    return [name for name in SETS if not wanted or name in wanted]


def report(result: Result) -> str:
    """The result for people: the table of the types in per cent, and the times."""
    return "\n".join([table(result, COLUMNS), "", *latencies(result)])


def _row(outcome: Outcome) -> Question:
    """LoCoMo's row, with the first place, where such short sets are decided."""
    row = outcome.row()
    first = recall_any_at_k(outcome.turns, outcome.question.gold, 1)
    return {**row, "metrics": {"any@1": first, **row["metrics"]}}


if __name__ == "__main__":
    app()
