"""Result files of a few questions, with metrics that follow from where the gold stands."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmark.metrics import recall_all_at_k, recall_any_at_k, reciprocal_rank
from benchmark.results import Question, Result
from benchmark.summary import means


def question(id: str, ranked: Sequence[str], gold: Sequence[str] = ("gold",), type: str = "user") -> Question:
    """A LongMemEval question; one whose id ends in ``_abs`` is not scored."""
    wanted = frozenset(gold)
    return Question(
        id=id,
        type=type,
        scored=not id.endswith("_abs"),
        gold=sorted(wanted),
        ranked=list(ranked[:10]),
        gold_ranks=[rank for rank, session in enumerate(ranked, 1) if session in wanted],
        turn=None,
        metrics={
            **{f"recall_any@{k}": recall_any_at_k(ranked, wanted, k) for k in (1, 3, 5, 10, 20)},
            **{f"recall_all@{k}": recall_all_at_k(ranked, wanted, k) for k in (1, 3, 5, 10, 20)},
            "mrr": reciprocal_rank(ranked, wanted),
        },
    )


def result(questions: Sequence[Question], benchmark: str = "longmemeval", **manifest: Any) -> Result:
    """Without intervals and types, which are computed anew wherever results are compared."""
    scored = [one for one in questions if one["scored"]]
    return Result(
        benchmark=benchmark,
        manifest={
            **{"profile": "default", "commit": "0123456789ab", "dirty": False, "partial": False, "seed": 0},
            "data": {"file": "tiny.json", "sha256": 8 * "0123456789abcdef"[:8]},
            **manifest,
        },
        summary={"scored": means(scored), "all": means(questions)},
        intervals={},
        types={},
        performance={
            "add_ms": {"n": 4, "p50": 1.5, "p95": 20.0, "p99": 40.0},
            "search_ms": {"n": 0},
            "index_bytes": 3 * 2**20,
        },
        questions=questions,
    )


def saved(path: Path, made: Result) -> Path:
    path.write_text(json.dumps(made.as_json()))
    return path


def agentmemory(path: Path, ranked: dict[str, list[str]], gold: Sequence[str] = ("gold",)) -> Path:
    """A file as agentmemory publishes it."""
    rows = [
        {"question_id": id, "question_type": "user", "retrieved_session_ids": sessions, "gold_session_ids": list(gold)}
        for id, sessions in ranked.items()
    ]
    path.write_text(json.dumps({"mode": "bm25", "questions": len(rows), "per_question": rows}))
    return path
