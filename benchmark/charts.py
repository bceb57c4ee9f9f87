"""The charts of one benchmark's standings, as figures: recall by depth, headline figures, by type, latency."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from benchmark.sets_data import SETS
from benchmark.standings import Standing, columns, label
from benchmark.svg import Series, bars, element, lines

CURVES: Mapping[str, Sequence[tuple[str, str, Sequence[int]]]] = {
    "longmemeval": (
        ("A gold session among the first k", "recall_any@", (1, 3, 5, 10, 20)),
        ("All gold sessions among the first k", "recall_all@", (1, 3, 5, 10, 20)),
    ),
    "locomo": (
        ("A gold turn among the first k", "any@", (5, 10, 20, 50, 100)),
        ("Share of the gold turns among the first k", "recall@", (5, 10, 20, 50, 100)),
    ),
    **dict.fromkeys(
        SETS,
        (
            ("A gold message among the first k", "any@", (1, 5, 10, 20, 50, 100)),
            ("Share of the gold messages among the first k", "recall@", (5, 10, 20, 50, 100)),
        ),
    ),
}
HEADLINE: Mapping[str, Sequence[str]] = {
    "longmemeval": ("recall_any@1", "recall_all@5", "mrr", "mrr@10"),
    "locomo": ("any@10", "recall@10", "mrr"),
    **dict.fromkeys(SETS, ("any@1", "recall@5", "mrr")),
}
"""Figures that still tell good systems apart; any@5 of LongMemEval hardly does."""

BY_TYPE: Mapping[str, Sequence[str]] = {
    "longmemeval": ("mrr", "mrr@10", "recall_all@5"),
    "locomo": ("recall@10", "mrr"),
    **dict.fromkeys(SETS, ("recall@5", "mrr")),
}

FEWEST = 5
"""Questions that a type needs for a bar of its own: a mean of fewer says nothing."""

LATENCY: Mapping[str, str] = {"add_ms": "Add", "search_ms": "Search"}
PERCENTILES = ("p50", "p95", "p99")


def charts(found: Sequence[Standing]) -> Iterator[str]:
    """Figures in the order shown. A system keeps its place, and so its colour, in all of them."""
    benchmark = found[0].benchmark
    known = columns(found)
    yield from (_curve(found, *curve) for curve in CURVES[benchmark])
    yield _headline(found, [name for name in HEADLINE[benchmark] if name in known])
    yield from (_by_type(found, name) for name in BY_TYPE[benchmark] if name in known)
    yield from (_latency(found, key) for key in LATENCY if any(_timed(one, key) for one in found))


def _curve(found: Sequence[Standing], title: str, metric: str, depths: Sequence[int]) -> str:
    depths = [k for k in depths if any(f"{metric}{k}" in one.means for one in found)]  # peers publish no more than ten
    series = [Series(one.name, [one.means.get(f"{metric}{k}") for k in depths]) for one in found]
    return _figure(title, "per cent of the questions, by k", lines(title, [str(k) for k in depths], series))


def _headline(found: Sequence[Standing], names: Sequence[str]) -> str:
    series = [
        Series(one.name, [one.means.get(name) for name in names], [one.intervals.get(name) for name in names]) for one in found
    ]
    title = "Headline figures"
    return _figure(title, "per cent, with 95% intervals", bars(title, [label(name) for name in names], series, 1, _per_cent))


def _by_type(found: Sequence[Standing], metric: str) -> str:
    counts: dict[str, int] = {}
    for row in found[0].system.rows.values():
        counts[row.type] = counts.get(row.type, 0) + row.scored
    types = sorted({type for one in found for type in one.types})
    series = [
        Series(one.name, [one.types.get(type, {}).get(metric) if counts[type] >= FEWEST else None for type in types])
        for one in found
    ]
    title = f"{label(metric)} by type of question"
    groups = [f"{type} ({counts[type]})" for type in types]
    unit = f"per cent; in brackets the number of questions, no bar for fewer than {FEWEST}"
    return _figure(title, unit, bars(title, groups, series, 1, _per_cent))


def _latency(found: Sequence[Standing], key: str) -> str:
    series = [Series(one.name, [_timed(one, key).get(name) for name in PERCENTILES]) for one in found]
    top = max(value for one in series for value in one.values if value is not None)
    title = f"{LATENCY[key]}, time"
    unit = "; ".join(["milliseconds, each on its own machine", *_cached(found)])
    return _figure(title, unit, bars(title, PERCENTILES, series, top, _milliseconds))


def _cached(found: Sequence[Standing]) -> Iterator[str]:
    """What must be known of times in which texts were looked up instead of embedded."""
    for one in found:
        if one.system.result and (share := one.system.result.cached):
            yield f"{one.name}: vectors from the cache ({100 * share:.1f}% of the texts)"


def _timed(one: Standing, key: str) -> Mapping[str, float]:
    """Percentiles in ms, empty where nothing was timed."""
    timed = one.system.result.performance.get(key, {}) if one.system.result else {}
    return timed if timed.get("n") else {}


def _figure(title: str, unit: str, chart: str) -> str:
    return element("figure", element("figcaption", escape(title), element("small", escape(unit))), chart)


def _per_cent(value: float) -> str:
    return f"{100 * value:.1f}"


def _milliseconds(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"
