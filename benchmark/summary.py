"""Per-question outcomes -> means, over all questions and by type, as data and as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from statistics import fmean

from benchmark.metrics import ndcg_at_k, ndcg_lme, recall_all_at_k, recall_any_at_k, reciprocal_rank

Metric = Callable[[Sequence[str], AbstractSet[str]], float]

METRICS: Mapping[str, Metric] = {
    "recall_any@1": partial(recall_any_at_k, k=1),
    "recall_any@5": partial(recall_any_at_k, k=5),
    "recall_any@10": partial(recall_any_at_k, k=10),
    "recall_any@20": partial(recall_any_at_k, k=20),
    "recall_all@5": partial(recall_all_at_k, k=5),
    "ndcg@10": partial(ndcg_at_k, k=10),
    "ndcg_lme@10": partial(ndcg_lme, k=10),
    "mrr": reciprocal_rank,
}

HEADLINE = ("recall_any@5", "recall_any@10", "recall_all@5", "ndcg@10", "mrr")

LABELS: Mapping[str, str] = {name: name.removeprefix("recall_") for name in METRICS}

Means = dict[str, float | int]
"""``n`` and the mean of every metric, as a fraction."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one question came to: the session ids as ranked, best first, and the gold ones."""

    id: str
    type: str
    abstention: bool
    gold: frozenset[str]
    ranked: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """Means over the questions without abstentions (``scored``, and ``types`` by question type) and with them (``all``)."""

    scored: Means
    all: Means
    types: Mapping[str, Means]

    def as_json(self) -> dict[str, object]:
        """The headline figures flat, everything nested."""
        flat = {name: self.scored[name] for name in ("n", *HEADLINE) if name in self.scored}
        return {**flat, "scored": self.scored, "all": self.all, "types": self.types}


def summarise(outcomes: Sequence[Outcome]) -> Summary:
    """Means of the outcomes; a group without questions has only its ``n`` of 0."""
    scored = [outcome for outcome in outcomes if not outcome.abstention]
    types = sorted({outcome.type for outcome in scored})
    return Summary(
        scored=means(scored),
        all=means(outcomes),
        types={name: means([outcome for outcome in scored if outcome.type == name]) for name in types},
    )


def means(outcomes: Sequence[Outcome]) -> Means:
    """The mean of every metric over the outcomes; only ``n`` where there are none."""
    if not outcomes:
        return {"n": 0}
    values = {name: fmean(metric(one.ranked, one.gold) for one in outcomes) for name, metric in METRICS.items()}
    return {"n": len(outcomes), **values}


def table(summary: Summary) -> str:
    """A row a group, a column a metric (any and all are recalls), in per cent."""
    rows = {"without abstentions": summary.scored, "with abstentions": summary.all, **summary.types}
    width = max(map(len, rows))
    header = " ".join([" " * width, f"{'n':>4}", *(label.rjust(6) for label in LABELS.values())])
    return "\n".join([header, *(_line(name.ljust(width), row) for name, row in rows.items())])


def _line(name: str, row: Means) -> str:
    cells = ((f"{100 * row[metric]:.1f}" if metric in row else "-").rjust(max(6, len(label))) for metric, label in LABELS.items())
    return " ".join([name, f"{row['n']:>4}", *cells])
