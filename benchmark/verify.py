"""``python -m benchmark.verify --data-dir DIR``: runs the commands of expected.json again and compares what they find.

A wrong corpus and a wrong ranking are different faults, so the corpus is compared first. Then each figure is ``ok`` (the same
within the condition's tolerance), ``near`` (off by no more than one question counts for: another CPU rounds vectors differently)
or ``fail``. Some figures also have a minimum, which no update may lower.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, NotRequired, TypedDict

import typer

from benchmark.command import CACHE, Cache, failures
from benchmark.data import read_json
from benchmark.errors import BenchError
from benchmark.results import ROOT, describe_file

EXPECTED = Path(__file__).parent / "expected.json"
TOLERANCE = 1e-4  # figures are fractions

Run = Callable[[Sequence[str]], dict[str, Any]]
"""Runs a command and gives the JSON object of its last line."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class Condition(TypedDict):
    """A command, with the names of its data files, and what it found: ``--update`` fills in ``files``, ``corpus``, ``figures``.

    ``files``: SHA-256 by name. ``corpus``: the statistics of what the bench read. ``figures``: fractions, and ``n``.
    ``minimum``: what figures must reach, whatever was found before.
    """

    name: str
    command: str
    files: NotRequired[dict[str, str]]
    corpus: NotRequired[dict[str, int]]
    figures: NotRequired[dict[str, float]]
    minimum: NotRequired[dict[str, float]]
    tolerance: NotRequired[float]


class Verdict(StrEnum):
    OK = "ok"
    NEAR = "near"
    FAIL = "fail"
    SKIP = "skip"


Line = tuple[Verdict, str]


def verify(condition: Condition, paths: Mapping[str, Path], run: Run) -> list[Line]:
    """Run the condition and judge every figure. ``paths``: the data files that are at hand, by name."""
    files, figures = condition.get("files"), condition.get("figures")
    if files is None or figures is None:
        return [(Verdict.SKIP, "holds no figures yet; --update fills them in")]
    if absent := files.keys() - paths.keys():
        return [(Verdict.SKIP, f"no {', '.join(sorted(absent))} in --data-dir")]
    changed = [name for name, digest in files.items() if describe_file(paths[name])["sha256"] != digest]
    if changed:
        return [(Verdict.FAIL, f"wrong corpus: {', '.join(changed)} is not the file that was measured (SHA-256)")]
    report = run(located(condition["command"], paths))
    if (read := statistics(report)) != condition.get("corpus"):
        return [(Verdict.FAIL, f"wrong corpus: read as {read}, expected {condition.get('corpus')}")]
    found = figures_of(report)
    tolerance = condition.get("tolerance", TOLERANCE)
    lines = [judged(name, found.get(name), value, tolerance, found["n"]) for name, value in figures.items()]
    return lines + below_minimum(condition, found)


def below_minimum(condition: Condition, figures: Mapping[str, float]) -> list[Line]:
    """A ``fail`` for each figure that is missing or doesn't reach its minimum."""
    found = {name: (figures.get(name, 0.0), least) for name, least in condition.get("minimum", {}).items()}
    return [
        (Verdict.FAIL, f"{name:<16} {value:.4f}, at least {least:.4f}") for name, (value, least) in found.items() if value < least
    ]


def judged(name: str, found: float | None, expected: float, tolerance: float, n: float) -> Line:
    """``n``: how many questions the figure is a mean of; one of them can move it by 1 / n."""
    if found is None:
        return Verdict.FAIL, f"{name:<16} missing, expected {expected:.4f}"
    off = abs(found - expected)
    verdict = Verdict.OK if off <= tolerance else Verdict.NEAR if off <= 1 / n + tolerance else Verdict.FAIL
    return verdict, f"{name:<16} {found:.4f}, expected {expected:.4f}"


def updated(condition: Condition, paths: Mapping[str, Path], run: Run) -> Condition:
    """The condition with what its command finds now. Raises ``BenchError`` where a file is missing."""
    names = data_files(condition["command"])
    if absent := [name for name in names if name not in paths]:
        raise BenchError(f"{condition['name']}: no {', '.join(absent)} in --data-dir")
    report = run(located(condition["command"], paths))
    digests = {name: describe_file(paths[name])["sha256"] for name in names}
    return {**condition, "files": digests, "corpus": statistics(report), "figures": figures_of(report)}


def data_files(command: str) -> list[str]:
    """The names behind ``--data`` and ``--compare``."""
    parts = shlex.split(command)
    return [value for option, value in pairwise(parts) if option in ("--data", "--compare")]


def located(command: str, paths: Mapping[str, Path]) -> list[str]:
    """The command's parts behind ``python``, with the paths of its data files."""
    names = data_files(command)
    return [str(paths[part]) if part in names else part for part in shlex.split(command)[1:]]


def statistics(report: Mapping[str, Any]) -> dict[str, int]:
    """What the bench says it read, all that is counted."""
    return {name: value for name, value in report["manifest"]["data"].items() if isinstance(value, int)}


def figures_of(report: Mapping[str, Any]) -> dict[str, float]:
    """The report's flat figures; with a peer also how far the two agree, as fractions of the questions and of ten sessions."""
    figures = {name: round(value, 6) for name, value in report.items() if isinstance(value, int | float)}
    if compared := report.get("compare"):
        figures["agree_any@5"] = round(compared["same_any5"] / compared["n_all"], 6)
        figures["shared@10"] = round(compared["shared"] / 10, 6)
    return figures


def in_folders(folders: Sequence[Path], names: Sequence[str]) -> dict[str, Path]:
    """Where the files of these names are, for those that are there; the first folder that has one counts."""
    return {name: folder / name for name in names for folder in reversed(folders) if (folder / name).is_file()}


def runner(cache: Path) -> Run:
    """Runs a command of this bench as a process of its own, as people do. Raises ``BenchError`` if it fails."""

    def run(arguments: Sequence[str]) -> dict[str, Any]:
        command = [sys.executable, *arguments, "--cache", str(cache), "--no-save", "--json"]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise BenchError(f"the command ended with exit code {done.returncode}: {shlex.join(arguments)}")
        report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return report

    return run


@app.command()
def main(
    names: Annotated[list[str] | None, typer.Argument(help="Only these conditions (default: all).")] = None,
    data_dir: Annotated[list[Path] | None, typer.Option(help="Folder with data files; may be given several times.")] = None,
    update: Annotated[bool, typer.Option("--update", help="Write what is found now as what is expected.")] = False,
    expected: Annotated[Path, typer.Option(help="The file with the conditions.")] = EXPECTED,
    cache: Cache = CACHE,
) -> None:
    """Run the expected conditions whose data is at hand. Exit code 1 if a figure fails, or if there was none to verify."""
    verdicts: list[Verdict] = []
    with failures("verify"):
        conditions: list[Condition] = read_json(expected)
        known = [condition["name"] for condition in conditions]
        if unknown := set(names or []) - set(known):
            raise BenchError(f"no condition {', '.join(sorted(unknown))}; there are {', '.join(known)}")
        run = runner(cache)
        for place, condition in enumerate(conditions):
            if names and condition["name"] not in names:
                continue
            paths = {name: path.resolve() for name, path in in_folders(data_dir or [], data_files(condition["command"])).items()}
            typer.echo(f"{condition['name']}: {condition['command']}")
            if update:
                found = updated(condition, paths, run)
                lines = below_minimum(found, found["figures"]) or [(Verdict.OK, "written")]
                if lines[0][0] is Verdict.OK:
                    conditions[place] = found
                    expected.write_text(json.dumps(conditions, indent=2) + "\n", encoding="utf-8")
            else:
                lines = verify(condition, paths, run)
            for verdict, line in lines:
                verdicts.append(verdict)
                typer.echo(f"  {verdict:<4}  {line}")
    if not set(verdicts) - {Verdict.SKIP}:
        typer.echo("verify: nothing was verified; --data-dir names the folder of the data files", err=True)
        raise typer.Exit(1)
    if Verdict.FAIL in verdicts:
        raise typer.Exit(1)


if __name__ == "__main__":
    app()
