"""Per-question outcomes -> metrics, their means with intervals, over all questions and by type, as data and as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Any

from benchmark.data import Place
from benchmark.evidence import CHARACTERS
from benchmark.metrics import gold_ranks, ndcg_at_k, ndcg_lme, recall_all_at_k, recall_any_at_k, recall_at_k, reciprocal_rank
from benchmark.results import RANKED, Means, Question, Result
from benchmark.stats import interval

Metric = Callable[[Sequence[object], AbstractSet[object]], float]

SESSION_METRICS: Mapping[str, Metric] = {
    **{f"recall_any@{k}": partial(recall_any_at_k, k=k) for k in (1, 3, 5, 10, 20)},
    **{f"recall_all@{k}": partial(recall_all_at_k, k=k) for k in (1, 3, 5, 10, 20)},
    "ndcg@10": partial(ndcg_at_k, k=10),
    "ndcg_lme@10": partial(ndcg_lme, k=10),
    "mrr": reciprocal_rank,
}
TURN_METRICS: Mapping[str, Metric] = {
    **{f"turn_any@{k}": partial(recall_any_at_k, k=k) for k in (5, 10, 20, 50, 100)},
    **{f"turn_recall@{k}": partial(recall_at_k, k=k) for k in (5, 10, 20, 50, 100)},
}
EVIDENCE = f"evidence@{CHARACTERS}chars"

HEADLINE = ("recall_any@5", "recall_any@10", "recall_all@5", "ndcg@10", "mrr")

COLUMNS: Mapping[str, str] = {
    **{"recall_any@1": "any@1", "recall_any@5": "any@5", "recall_any@10": "any@10", "recall_all@5": "all@5"},
    **{"ndcg@10": "ndcg@10", "ndcg_lme@10": "ndcg_lme", "mrr": "mrr"},
    **{"turn_recall@10": "turn r@10", EVIDENCE: "evidence", "containment": "contained"},
}
"""What the table shows, and under which heading."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one question came to: the session ids as ranked, best first, and the gold ones.

    ``turns``: the places of the hits in order, None where hits are no turns; ``evidence``: those of the turns that hold the
    answer, where that is known; ``seen``: how many of the hits an answer model with room for 50,000 characters reads;
    ``containment``: whether the answer stands there.
    """

    id: str
    type: str
    abstention: bool
    gold: frozenset[str]
    ranked: tuple[str, ...]
    turns: tuple[Place, ...] | None = None
    evidence: frozenset[Place] = frozenset()
    seen: int = 0
    containment: float | None = None
    add_ms: tuple[float, ...] = ()
    search_ms: float = 0.0

    def question(self) -> Question:
        """Its row in the result file. Turn metrics are there only where hits are turns and some of them are known to matter."""
        turns = self.turns if self.evidence else None
        return Question(
            id=self.id,
            type=self.type,
            scored=not self.abstention,
            gold=sorted(self.gold),
            ranked=list(self.ranked[:RANKED]),
            gold_ranks=gold_ranks(self.ranked, self.gold),
            turn=None if turns is None else {"gold": len(self.evidence), "gold_ranks": gold_ranks(turns, self.evidence)},
            metrics=self._metrics(turns),
        )

    def _metrics(self, turns: tuple[Place, ...] | None) -> dict[str, float]:
        values = {name: metric(self.ranked, self.gold) for name, metric in SESSION_METRICS.items()}
        if turns is not None:
            values |= {name: metric(turns, self.evidence) for name, metric in TURN_METRICS.items()}
            values[EVIDENCE] = recall_at_k(turns, self.evidence, self.seen)
        if self.containment is not None:
            values["containment"] = self.containment
        return values


@dataclass(frozen=True, slots=True)
class Summary:
    """Means over the scored questions (``scored``, and ``types`` by question type) and over all; 95% intervals of ``scored``."""

    scored: Means
    all: Means
    types: Mapping[str, Means]
    intervals: Mapping[str, tuple[float, float]]


def summarise(questions: Sequence[Question], seed: int = 0) -> Summary:
    """Means of the questions; a group without questions has only its ``n`` of 0. ``seed``: of the bootstrap."""
    scored = [question for question in questions if question["scored"]]
    types = sorted({question["type"] for question in scored})
    return Summary(
        scored=means(scored),
        all=means(questions),
        types={name: means([question for question in scored if question["type"] == name]) for name in types},
        intervals={name: interval(values, seed) for name, values in _values(scored).items()},
    )


def means(questions: Sequence[Question]) -> Means:
    """``n``, the mean of every metric over the questions that have it, and ``n_<metric>``, their number, where it isn't ``n``."""
    values = _values(questions)
    fewer = {f"n_{name}": len(column) for name, column in values.items() if len(column) < len(questions)}
    return {"n": len(questions), **{name: fmean(column) for name, column in values.items()}, **fewer}


def flat(result: Result, headline: Sequence[str]) -> dict[str, Any]:
    """The headline figures of the scored questions flat, all else nested, without the single questions."""
    scored = result.summary["scored"]
    nested = {name: value for name, value in result.as_json().items() if name != "questions"}
    return {name: scored[name] for name in ("n", *headline) if name in scored} | nested


def latencies(result: Result) -> list[str]:
    """A line for Add and one for Search, in ms; none for what was not timed."""
    timed = {name: result.performance[name] for name in ("add_ms", "search_ms") if result.performance[name]["n"]}
    return [
        f"{name:<10}p50 {times['p50']:.1f}  p95 {times['p95']:.1f}  p99 {times['p99']:.1f}  (n {times['n']})"
        for name, times in timed.items()
    ]


def table(result: Result, columns: Mapping[str, str] = COLUMNS) -> str:
    """A row a group, a column a metric, in per cent; under the scored questions their 95% interval.

    Behind a mean that not all questions of its group have stands how many do.
    """
    rows = {
        "scored": _cells(result.summary["scored"], columns),
        "  95% interval": ["", *(_interval(result.intervals.get(metric)) for metric in columns)],
        "all": _cells(result.summary["all"], columns),
        **{name: _cells(group, columns) for name, group in result.types.items()},
    }
    lines = [["", "n", *columns.values()], *([name, *cells] for name, cells in rows.items())]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join([name.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))])
        for name, *cells in lines
    )


def _values(questions: Sequence[Question]) -> dict[str, list[float]]:
    """Each metric's values over the questions that have it."""
    values: dict[str, list[float]] = {}
    for question in questions:
        for name, value in question["metrics"].items():
            values.setdefault(name, []).append(value)
    return values


def _cells(group: Means, columns: Mapping[str, str]) -> list[str]:
    return [str(group["n"]), *(_mean(group, metric) if metric in group else "-" for metric in columns)]


def _mean(group: Means, metric: str) -> str:
    fewer = group.get(f"n_{metric}")
    return f"{100 * group[metric]:.1f}" + (f" (n {fewer})" if fewer else "")


def _interval(interval: Sequence[float] | None) -> str:
    return f"{100 * interval[0]:.0f}-{100 * interval[1]:.0f}" if interval else "-"
