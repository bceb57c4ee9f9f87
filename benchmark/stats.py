"""How sure a figure is: intervals of means, the sign test, percentiles. Pure functions; random draws follow their seed."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, sqrt
from statistics import NormalDist, fmean

import numpy as np

LEVEL = 0.95  # of all intervals
NO_VALUE = "no value: the interval of nothing is undefined"


def interval(values: Sequence[float], seed: int) -> tuple[float, float]:
    """The 95% interval of the mean: Wilson's where every value is 0 or 1, else the bootstrap's.

    Redrawing 28 hits out of 28 gives 28 hits every time, as if there were no doubt; Wilson's interval begins at .88. Raises
    ``ValueError`` where there is no value.
    """
    return wilson_interval(values) if {0, 1}.issuperset(values) else bootstrap_interval(values, seed)


def wilson_interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95% score interval of a proportion (Wilson 1927); ``values`` are 0 or 1. Raises ``ValueError`` where there is none."""
    if not len(values):
        raise ValueError(NO_VALUE)
    z2_n = NormalDist().inv_cdf((1 + LEVEL) / 2) ** 2 / len(values)
    mean = fmean(values)
    centre, half = mean + z2_n / 2, sqrt(z2_n * (mean * (1 - mean) + z2_n / 4))
    return max(0.0, (centre - half) / (1 + z2_n)), min(1.0, (centre + half) / (1 + z2_n))


def bootstrap_interval(values: Sequence[float], seed: int, rounds: int = 2000) -> tuple[float, float]:
    """The 95% percentile interval of the mean (Efron and Tibshirani 1993, chapter 13): ``values`` are redrawn ``rounds`` times.

    Questions are what is drawn, so it says how much the figure depends on which questions were asked; it knows nothing of how
    well they stand for others. For paired values give the differences. Raises ``ValueError`` where there is no value.
    """
    if not len(values):
        raise ValueError(NO_VALUE)
    drawn = np.random.default_rng(seed).integers(0, len(values), (rounds, len(values)))
    low, high = np.quantile(np.asarray(values, dtype=np.float64)[drawn].mean(axis=1), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def sign_test(wins: int, losses: int) -> float:
    """The exact two-sided p of ``wins`` against ``losses``, or a more uneven count, if a fair coin decided; ties are left out."""
    games = wins + losses
    tail = sum(comb(games, count) for count in range(min(wins, losses) + 1))
    return min(1.0, 2 * tail / (1 << games))


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """``n`` and p50, p95 and p99 in the unit of ``values``, interpolated; only ``n`` where there is no value."""
    if not len(values):
        return {"n": 0}
    p50, p95, p99 = np.quantile(np.asarray(values, dtype=np.float64), [0.5, 0.95, 0.99])
    return {"n": len(values), "p50": round(float(p50), 3), "p95": round(float(p95), 3), "p99": round(float(p99), 3)}
