"""Making ranked lists: the one place where order, ties and cuts are decided. Imports only ``types``."""

import numpy as np

from memserver.types import IntArray, Layout, Ranked, ScoreArray


def best(scores: ScoreArray, candidates: IntArray, depth: int) -> Ranked:
    """The ``depth`` best of ``candidates`` by ``scores`` (one for each candidate); those tied with the last one are kept too."""
    if len(candidates) > depth > 0:
        floor = np.partition(scores, len(scores) - depth)[len(scores) - depth]
        kept = scores >= floor
        scores, candidates = scores[kept], candidates[kept]
    order = np.lexsort((candidates, -scores))
    return Ranked(candidates[order].astype(np.int32), scores[order])


def ordered(ranked: Ranked, layout: Layout) -> Ranked:
    """The same list in the order (-score, id), which does not depend on the order in which messages arrived."""
    order = np.lexsort((layout.ids[ranked.entries], -ranked.scores))
    return Ranked(ranked.entries[order], ranked.scores[order])


def filled(ranked: Ranked, layout: Layout, wanted: int) -> Ranked:
    """``ranked`` with the newest of the other messages behind it, at score 0, up to ``wanted`` in all.

    What no leg found may still help, and costs nothing where a slot would stay empty.
    """
    missing = min(wanted, len(layout)) - len(ranked)
    if missing <= 0:
        return ranked
    others = np.setdiff1d(np.arange(len(layout), dtype=np.int32), ranked.entries)
    if not np.isnat(layout.days[others]).all():
        others = others[np.lexsort((layout.ids[others], layout.days[others]))]
    others = others[-missing:]
    return Ranked(np.concatenate([ranked.entries, others]), np.concatenate([ranked.scores, np.zeros(len(others))]))


def dense_ranks(scores: ScoreArray) -> ScoreArray:
    """Ranks 1, 2, 3, ... of descending ``scores``; equal scores share a rank, so ties need no arbitrary order."""
    if not len(scores):
        return scores
    return np.concatenate([[1.0], 1.0 + np.cumsum(scores[1:] < scores[:-1])])


def min_max(scores: ScoreArray) -> ScoreArray:
    """``scores`` mapped linearly to [0, 1]; all ones where they are all equal."""
    if not len(scores):
        return scores
    low, high = float(scores.min()), float(scores.max())
    return (scores - low) / (high - low) if high > low else np.ones_like(scores)
