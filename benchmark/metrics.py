"""Ranking metrics of one question: pure functions of the ranked ids (distinct, best first) and the set of gold ids.

An id is a session's name, a turn's place or the like. All lie within [0, 1], higher is better; ranks count from 1. All raise
``ValueError`` for an empty gold set.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

Discount = Callable[[int], float]


def gold_ranks(ranked: Sequence[object], gold: AbstractSet[object]) -> list[int]:
    """Where in ``ranked`` the gold ids stand, ascending; those that were not ranked are missing."""
    if not gold:
        raise ValueError("no gold id: leave such a question out, its metrics are undefined")
    return [rank for rank, item in enumerate(ranked, 1) if item in gold]


def recall_any_at_k(ranked: Sequence[object], gold: AbstractSet[object], k: int) -> float:
    """1 if a gold id is among the first ``k``, else 0."""
    return float(any(rank <= k for rank in gold_ranks(ranked, gold)))


def recall_all_at_k(ranked: Sequence[object], gold: AbstractSet[object], k: int) -> float:
    """1 if every gold id is among the first ``k``, else 0."""
    return float(sum(rank <= k for rank in gold_ranks(ranked, gold)) == len(gold))


def recall_at_k(ranked: Sequence[object], gold: AbstractSet[object], k: int) -> float:
    """The share of the gold ids that are among the first ``k``."""
    return sum(rank <= k for rank in gold_ranks(ranked, gold)) / len(gold)


def reciprocal_rank(ranked: Sequence[object], gold: AbstractSet[object]) -> float:
    """1 / rank of the first gold id, 0 if none was found. Its mean over questions is MRR."""
    ranks = gold_ranks(ranked, gold)
    return 1 / ranks[0] if ranks else 0.0


def ndcg_at_k(ranked: Sequence[object], gold: AbstractSet[object], k: int) -> float:
    """Textbook NDCG (Järvelin and Kekäläinen 2002) with binary gains and the discount 1 / log2(rank + 1)."""
    return _ndcg(ranked, gold, k, lambda rank: 1 / math.log2(rank + 1))


def ndcg_lme(ranked: Sequence[object], gold: AbstractSet[object], k: int) -> float:
    """NDCG as LongMemEval's own scorer has it: 1 / log2(rank), ranks 1 and 2 undiscounted. Not comparable with ``ndcg_at_k``."""
    return _ndcg(ranked, gold, k, lambda rank: 1 / math.log2(max(rank, 2)))


def _ndcg(ranked: Sequence[object], gold: AbstractSet[object], k: int, discount: Discount) -> float:
    found = sum(discount(rank) for rank in gold_ranks(ranked, gold) if rank <= k)
    ideal = sum(discount(rank) for rank in range(1, min(k, len(gold)) + 1))
    return found / ideal
