"""Where systems stand against each other: means and intervals over the questions that all of them have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from benchmark.sets_data import SETS
from benchmark.stats import interval
from benchmark.systems import Row, System, align

SEED = 0  # of the bootstrap, whatever the results' own seeds: all rows are drawn alike

COLUMNS: Mapping[str, Sequence[str]] = {
    "longmemeval": (
        *("recall_any@1", "recall_any@5", "recall_any@10", "recall_all@5", "recall_all@10"),
        *("ndcg@10", "ndcg_lme@10", "mrr", "mrr@10"),
    ),
    "locomo": (
        *("any@5", "any@10", "recall@10", "recall@100", "ndcg@10", "mrr", "session_any@5"),
        *("evidence@50000chars", "evidence@117760tokens", "containment"),
    ),
    **dict.fromkeys(SETS, ("any@1", "any@5", "recall@5", "recall@10", "recall@100", "ndcg@10", "mrr")),
}
"""What tables show, best known first."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One system's figures. ``n`` scored questions with ``means`` and 95% ``intervals``; ``n_all`` and ``all_means`` with the
    unscored ones; ``types``: means of each type's scored questions. Fractions; a metric that the system doesn't have is absent.
    ``counts``: how many of the ``n`` have each metric.
    """

    system: System
    n: int
    n_all: int
    means: Mapping[str, float]
    counts: Mapping[str, int]
    intervals: Mapping[str, tuple[float, float]]
    all_means: Mapping[str, float]
    types: Mapping[str, Mapping[str, float]]

    @property
    def benchmark(self) -> str:
        return self.system.benchmark

    @property
    def name(self) -> str:
        return self.system.name


def standings(systems: Sequence[System]) -> list[Standing]:
    """Of systems of one benchmark, over their common questions. Raises ``BenchError`` if there are none."""
    return [_standing(system) for system in align(systems)]


def columns(found: Sequence[Standing]) -> list[str]:
    """The metrics that a table of these has: one MRR, over all sessions if every system has it, else over the first ten."""
    unlike = "mrr@10" if all("mrr" in one.means for one in found) else "mrr"
    return [name for name in COLUMNS[found[0].benchmark] if name != unlike and any(name in one.means for one in found)]


def label(metric: str) -> str:
    """``recall_any@5`` is ``any@5`` where people read it, budgets are rounded."""
    return metric.removeprefix("recall_").replace("50000chars", "50k characters").replace("117760tokens", "118k tokens")


def headings(found: Sequence[Standing], metrics: Sequence[str]) -> list[str]:
    """The labels, with the number of questions that have the metric where that isn't all of them."""
    return [label(metric) + _fewer(found, metric) for metric in metrics]


def line(*cells: str) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def markdown(found: Sequence[Standing]) -> str:
    """A table in per cent with intervals. A second row counts the unscored questions too, where there are any."""
    names = columns(found)
    lines = [line("system", "n", *headings(found, names)), line(":--", *["--:"] * (1 + len(names)))]
    for one in found:
        lines.append(line(one.name, str(one.n), *(_percent(one, name) for name in names)))
        if one.n_all > one.n:
            cells = (f"{100 * one.all_means[name]:.1f}" if name in one.all_means else "–" for name in names)
            lines.append(line("– the unscored too", str(one.n_all), *cells))
    return "\n".join(lines)


def _standing(system: System) -> Standing:
    rows = list(system.rows.values())
    scored = [row for row in rows if row.scored]
    values = _values(scored)
    return Standing(
        system=system,
        n=len(scored),
        n_all=len(rows),
        means=_means(values),
        counts={name: len(column) for name, column in values.items()},
        intervals={name: interval(column, SEED) for name, column in values.items()},
        all_means=_means(_values(rows)),
        types={type: _means(_values(row for row in scored if row.type == type)) for type in sorted({row.type for row in scored})},
    )


def _values(rows: Iterable[Row]) -> dict[str, list[float]]:
    """Each metric's values; a question that lacks one (a number for an answer, say, has no containment) doesn't count for it."""
    values: dict[str, list[float]] = {}
    for row in rows:
        for name, value in row.metrics.items():
            values.setdefault(name, []).append(value)
    return values


def _means(values: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {name: fmean(column) for name, column in values.items()}


def _fewer(found: Sequence[Standing], metric: str) -> str:
    counts = {one.counts[metric] for one in found if metric in one.counts} - {found[0].n}
    return f" (n {' or '.join(map(str, sorted(counts)))})" if counts else ""


def _percent(one: Standing, metric: str) -> str:
    if metric not in one.means:
        return "–"
    low, high = one.intervals[metric]
    return f"{100 * one.means[metric]:.1f} [{100 * low:.1f}, {100 * high:.1f}]"
