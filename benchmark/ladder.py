"""``python -m benchmark.ladder --data FILE``: from no memory at all up to an oracle, a rung a row, each paired with the default.

It says what every part of the product is worth; the README's ablation table is what this prints.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmark import command, locomo, longmemeval, sets
from benchmark.client import Memory
from benchmark.command import Conditions
from benchmark.compare import Comparison, p_value, paired
from benchmark.controls import Control, Order, Said, at_random, averaged, gold_of_cases, gold_of_conversations, nothing, oracle
from benchmark.data import load_cases
from benchmark.errors import BenchError
from benchmark.locomo_data import load_conversations
from benchmark.profiles import PROFILES
from benchmark.results import REVISION, Question, Result, describe_file, save
from benchmark.sets_data import SETS, load_set
from benchmark.standings import Standing, headings, line, standings
from benchmark.systems import System, rows
from memserver.methods import load_settings

DEFAULT = "default"
CLIMB = ("nothing", "random", "bm25", "rank_bm25", "vector", "seed", DEFAULT)
RUNGS = (*CLIMB, *(name for name in PROFILES if name not in CLIMB), "oracle")
"""Every profile has its row: those that take a part out of the default stand below it."""

DRAWS = 20
"""Of the random history; its figures are their means."""

Play = Callable[[Memory], list[Question]]
"""Plays a data set through a memory."""

Gold = Mapping[str, AbstractSet[Said]]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class Name(StrEnum):
    LONGMEMEVAL = longmemeval.NAME
    LOCOMO = locomo.NAME
    CHINESE = "chinese"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Bench:
    """What the ladder takes from a benchmark. ``load``: (file, limit, seed) -> how to play it, and its gold by query; ``data``:
    its file, where it is our own.
    """

    load: Callable[[Path, int | None, int], tuple[Play, Gold]]
    measure: Callable[..., Result]
    columns: Sequence[str]
    left_out: frozenset[str] = frozenset()
    data: Path | None = None


def _longmemeval(data: Path, limit: int | None, seed: int) -> tuple[Play, Gold]:
    cases = load_cases(data, limit)

    def play(memory: Memory) -> list[Question]:
        return [outcome.question() for outcome in longmemeval.run(cases, memory, seed, 1, command.progress("cases"))]

    return play, gold_of_cases(cases)


def _locomo(data: Path, limit: int | None, seed: int) -> tuple[Play, Gold]:
    conversations = load_conversations(data, limit)

    def play(memory: Memory) -> list[Question]:
        return [outcome.row() for outcome in locomo.run(conversations, memory, seed, 1)]

    return play, gold_of_conversations(conversations)


def _set(data: Path, limit: int | None, seed: int) -> tuple[Play, Gold]:
    whole = load_set(data)
    conversation = replace(whole, questions=whole.questions[:limit])
    return lambda memory: sets.run(conversation, memory, seed), gold_of_conversations([conversation])


SESSIONS = frozenset({"seed"})
"""Rungs whose hits are whole sessions, where the evidence are single messages."""

BENCHES: Mapping[Name, Bench] = {
    Name.LONGMEMEVAL: Bench(
        _longmemeval,
        longmemeval.measure,
        (
            *("recall_any@1", "recall_any@5", "recall_all@5", "ndcg@10", "mrr"),
            *("turn_any@10", "turn_recall@10", "evidence@50000chars", "containment"),
        ),
    ),
    Name.LOCOMO: Bench(
        _locomo,
        locomo.measure,
        ("any@10", "recall@10", "recall@100", "mrr", "session_any@5", "evidence@50000chars", "containment"),
        SESSIONS,
    ),
    **{name: Bench(_set, sets.measure, sets.HEADLINE, SESSIONS, SETS[name]) for name in (Name.CHINESE, Name.CODE)},
}


@app.command()
def main(
    data: Annotated[Path | None, typer.Option(help="The data set's own file, plain or .gz; chinese and code have one.")] = None,
    benchmark: Annotated[Name, typer.Option(help="What the file holds.")] = Name.LONGMEMEVAL,
    only: Annotated[str, typer.Option(help="Rungs to run, separated by commas.")] = "",
    skip: Annotated[str, typer.Option(help="Rungs to leave out.")] = "",
    set_: command.Set = None,
    limit: command.Limit = None,
    seed: command.Seed = 0,
    cache: command.Cache = command.CACHE,
    folder: Annotated[Path | None, typer.Option("--save", help="Folder to keep each profile's result file in.")] = None,
    as_json: command.AsJson = False,
) -> None:
    """Climb the ladder and print it as a Markdown table, best read against the row of the default."""
    bench = BENCHES[benchmark]
    with command.failures("ladder"):
        given = command.assignments(set_ or [])
        names = choose([name for name in RUNGS if name not in bench.left_out], only, skip)
        file = data or bench.data
        if file is None:
            raise BenchError(f"--benchmark {benchmark} needs --data: the path of the data set's own file")
        if folder and limit:
            raise BenchError("--save and --limit don't go together: a part of the questions is no result")
        measure = partial(bench.measure, file, seed=seed, cache=cache, limit=limit)
        play, gold = bench.load(file, limit, seed)
        settings = load_settings({}, given)
        controls: dict[str, list[Order]] = {
            "nothing": [nothing],
            "random": [at_random(DRAWS * seed + draw) for draw in range(DRAWS)],
            "oracle": [oracle(gold)],
        }
        systems = []
        for place, name in enumerate(names, 1):
            print(f"{name} ({place}/{len(names)})", file=sys.stderr, flush=True)
            result = None if name in controls else measure(Conditions(name, given=given))
            runs = [result.questions] if result else [play(Control(order, settings)) for order in controls[name]]
            systems.append(System(name, benchmark, averaged([rows(benchmark, questions) for questions in runs]), result))
            if result and folder:
                save(result, folder)
        found = standings(systems)
        described = describe_file(file)
    against = versus_default(found)
    options = {"only": only, "skip": skip, "limit": limit, "seed": seed}
    shown = shlex.join(
        [
            *("python", "-m", "benchmark.ladder", f"--benchmark={benchmark}"),
            *([f"--data={data.name}"] if data else []),
            *(f"--{name}={value}" for name, value in options.items() if value),
            *(f"--set={key}={value}" for key, value in given.items()),
        ]
    )
    typer.echo(table(found, bench.columns, against))
    commit, dirty = REVISION
    made_by = [
        f"commit {commit}{' and uncommitted changes' if dirty else ''}",
        f"{described['file']} {described['sha256'][:12]}",
        *weights(found),
    ]
    typer.echo(f"\n`{shown}`: {found[0].n} questions, per cent. `random` is the mean of {DRAWS} draws.")
    if against:
        typer.echo(f"p is not corrected for the {len(against)} rungs held against the default.")
    typer.echo("; ".join(made_by))
    if as_json:
        run = {"benchmark": benchmark, "command": shown, "commit": commit, "dirty": dirty, "data": described}
        typer.echo(json.dumps({**run, "rows": _rows(found, against)}))


def choose(names: Sequence[str], only: str, skip: str) -> list[str]:
    """The rungs to run, in the ladder's order. ``only`` and ``skip`` are names with commas between. Raises ``BenchError``."""
    wanted, unwanted = ({name.strip() for name in text.split(",") if name.strip()} for text in (only, skip))
    if unknown := (wanted | unwanted) - set(names):
        raise BenchError(f"no rung {', '.join(sorted(unknown))}: there are {', '.join(names)}")
    chosen = [name for name in names if (not wanted or name in wanted) and name not in unwanted]
    if not chosen:
        raise BenchError("--only and --skip leave no rung")
    return chosen


def versus_default(found: Sequence[Standing]) -> dict[str, Comparison]:
    """Each rung against the default, by the rung's name; nothing if the default wasn't run."""
    default = next((one.system for one in found if one.name == DEFAULT), None)
    return {one.name: paired(one.system, default) for one in found if one.system is not default} if default else {}


def weights(found: Sequence[Standing]) -> list[str]:
    """The models that took part, each with the first digits of its fingerprint."""
    manifests = [one.system.result.manifest for one in found if one.system.result]
    used = {f"{manifest['model']} {manifest['fingerprint'][:12]}" for manifest in manifests if manifest["model"] != "none"}
    return sorted(used)


def table(found: Sequence[Standing], metrics: Sequence[str], against: Mapping[str, Comparison]) -> str:
    """A row a rung in per cent; the last columns say on how many questions its first gold item ranks before, with and behind the
    default's, and the sign test's p.
    """
    lines = [line("", *headings(found, metrics), "win / tie / loss", "p"), line(":--", *["--:"] * (len(metrics) + 2))]
    for one in found:
        cells = (f"{100 * one.means[name]:.1f}" if name in one.means else "–" for name in metrics)
        versus = against.get(one.name)
        verdict = (f"{versus.wins} / {versus.ties} / {versus.losses}", p_value(versus.p)) if versus else ("", "")
        lines.append(line(f"**{one.name}**" if one.name == DEFAULT else one.name, *cells, *verdict))
    return "\n".join(lines)


def _rows(found: Sequence[Standing], against: Mapping[str, Comparison]) -> list[dict[str, Any]]:
    return [
        {
            "name": one.name,
            "settings": PROFILES.get(one.name),
            "n": one.n,
            "metrics": one.means,
            "counts": one.counts,
            "fingerprint": one.system.result and one.system.result.manifest["fingerprint"],
            "intervals": one.intervals,
            "versus_default": {key: getattr(against[one.name], key) for key in ("wins", "ties", "losses", "p")}
            if one.name in against
            else None,
        }
        for one in found
    ]


if __name__ == "__main__":
    app()
