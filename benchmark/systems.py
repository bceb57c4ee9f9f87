"""Systems that can be set side by side: our result files and the rows that peers publish, read into one shape.

Formats, told apart by what is in the file: ours (``benchmark.results``), agentmemory's JSON (``per_question``), memesh's JSON
(``results``) and memweave's JSONL (a row a line).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmark.data import read_json
from benchmark.errors import BenchError
from benchmark.metrics import ndcg_at_k, ndcg_lme, recall_all_at_k, recall_any_at_k, reciprocal_rank
from benchmark.results import Question, Result, load

Metric = Callable[[Sequence[str], AbstractSet[str]], float]

DEPTH = 10
"""Sessions that every peer publishes. Beside a peer a gold session further down counts as not found, on both sides."""

AT_TEN: Mapping[str, Metric] = {
    **{f"recall_any@{k}": partial(recall_any_at_k, k=k) for k in (1, 3, 5, 10)},
    **{f"recall_all@{k}": partial(recall_all_at_k, k=k) for k in (1, 3, 5, 10)},
    "ndcg@10": partial(ndcg_at_k, k=10),
    "ndcg_lme@10": partial(ndcg_lme, k=10),
    "mrr@10": reciprocal_rank,
}
"""What can be told of a question from its first ten sessions."""


@dataclass(frozen=True, slots=True)
class Row:
    """One question of one system. ``ranked``: its first ten sessions, best first; ``metrics``: fractions, higher is better."""

    type: str
    scored: bool
    gold: frozenset[str]
    ranked: tuple[str, ...]
    metrics: Mapping[str, float]

    @property
    def rank(self) -> int | None:
        """Of the first gold item (a session; a turn in LoCoMo), from 1, among all that is known; None if it isn't there."""
        reciprocal = self.metrics.get("mrr", self.metrics.get("mrr@10", 0.0))
        return round(1 / reciprocal) if reciprocal else None


@dataclass(frozen=True, slots=True)
class System:
    """A named system's rows by question id; ``result`` where the file is ours."""

    name: str
    benchmark: str
    rows: Mapping[str, Row]
    result: Result | None = None


def read_system(path: Path) -> System:
    """A result file of ours or a peer's. Raises ``BenchError`` for anything else."""
    value = _read(path)
    if isinstance(value, dict) and "manifest" in value:
        return ours(load(path))
    name, published = _published(path, value)
    try:
        read = {row["question_id"]: _peer_row(row) for row in published}
    except (KeyError, TypeError) as error:
        raise BenchError(f"{path}: a row lacks what it needs ({type(error).__name__}: {error})") from error
    return System(name, "longmemeval", {id: row for id, row in read.items() if row.gold})


def ours(result: Result) -> System:
    """A result of this bench as a system, named by its profile and its code."""
    name = f"{result.label} ({result.code(7)})"
    return System(name, result.benchmark, rows(result.benchmark, result.questions), result)


def rows(benchmark: str, questions: Sequence[Question]) -> dict[str, Row]:
    """A run's questions as rows. What peers publish too is computed from the first ten sessions, as for them."""
    found = {}
    for question in questions:
        gold, ranked = frozenset(question["gold"]), tuple(question["ranked"][:DEPTH])
        # A LoCoMo question is graded by its turns, which only the run itself knows.
        like_peers = _at_ten(ranked, gold) if benchmark == "longmemeval" else {}
        metrics = {**like_peers, **question["metrics"]}
        found[question["id"]] = Row(question["type"], question["scored"], gold, ranked, metrics)
    return found


def align(systems: Sequence[System]) -> list[System]:
    """The systems with the questions that all of them have, graded alike: by our gold where one is ours, else by the first's.

    Raises ``BenchError`` if they are of different benchmarks, or ours of different data files: the same question is another one
    in another haystack; and if they have no question in common.
    """
    if len({system.benchmark for system in systems}) > 1:
        raise BenchError("results of different benchmarks can't be compared question by question")
    measured = [system.result.manifest["data"] for system in systems if system.result]
    if len({data["sha256"] for data in measured}) > 1:
        files = ", ".join(sorted({f"{data['file']} ({data['sha256'][:12]})" for data in measured}))
        raise BenchError(f"results on different data files can't be compared: {files}")
    judge = next((system for system in systems if system.result), systems[0])
    ids = [id for id in judge.rows if all(id in system.rows for system in systems)]
    if not ids:
        raise BenchError("no question is common to " + " and ".join(system.name for system in systems))
    return [replace(system, rows={id: _graded(system.rows[id], judge.rows[id]) for id in ids}) for system in systems]


def _graded(row: Row, judge: Row) -> Row:
    """The row against the judge's gold. Turns are graded by the run that knows them: LoCoMo has no peers."""
    if row.gold == judge.gold:
        return replace(row, scored=judge.scored)
    return replace(row, scored=judge.scored, gold=judge.gold, metrics=_at_ten(row.ranked, judge.gold))


def _at_ten(ranked: Sequence[str], gold: frozenset[str]) -> dict[str, float]:
    return {name: metric(ranked[:DEPTH], gold) for name, metric in AT_TEN.items()}


def _read(path: Path) -> Any:
    """The JSON value, or the list of the values of a file with one a line."""
    if path.suffix != ".jsonl":
        return read_json(path)
    try:
        return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    except OSError as error:
        raise BenchError(f"{path}: can't be read ({error.strerror or error})") from error
    except ValueError as error:
        raise BenchError(f"{path}: a line is not JSON") from error


def _published(path: Path, value: Any) -> tuple[str, list[Any]]:
    """The peer's name and its rows."""
    if isinstance(value, dict) and isinstance(value.get("per_question"), list):
        return f"agentmemory {value.get('mode', '')}".strip(), value["per_question"]
    if isinstance(value, dict) and isinstance(value.get("results"), list):
        return "memesh", value["results"]
    if isinstance(value, list) and all(isinstance(row, dict) for row in value):
        rows = [row for row in value if "__summary__" not in row]
        if rows:
            return "memweave", rows
    raise BenchError(f"{path}: neither a result file of this bench nor one of agentmemory, memesh or memweave")


def _peer_row(row: Mapping[str, Any]) -> Row:
    # agentmemory's names, or the ones that memesh and memweave share
    ranked = row.get("retrieved_session_ids", row.get("ranked_session_ids"))
    gold = frozenset(row.get("gold_session_ids", row.get("answer_session_ids")))
    if not isinstance(ranked, list):
        raise KeyError("ranked_session_ids")
    metrics = _at_ten(ranked, gold) if gold else {}
    return Row(row["question_type"], not row["question_id"].endswith("_abs"), gold, tuple(ranked[:DEPTH]), metrics)
