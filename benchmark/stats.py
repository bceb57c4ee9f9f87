"""How sure a figure is: bootstrap intervals, the sign test, percentiles. Pure functions; random draws follow their seed."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import numpy as np

LEVEL = 0.95  # of all intervals


def bootstrap_interval(values: Sequence[float], seed: int, rounds: int = 2000) -> tuple[float, float]:
    """The 95% percentile interval of the mean (Efron and Tibshirani 1993, chapter 13): ``values`` are redrawn ``rounds`` times.

    Questions are what is drawn, so it says how much the figure depends on which questions were asked; it knows nothing of how
    well they stand for others. For paired values give the differences. Raises ``ValueError`` where there is no value.
    """
    if not len(values):
        raise ValueError("no value: the interval of nothing is undefined")
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
