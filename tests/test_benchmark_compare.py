from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmark.compare import Paired, compare, read_agentmemory
from benchmark.errors import BenchError
from benchmark.summary import Outcome

TEN = [f"s{rank}" for rank in range(1, 11)]


def outcome(question: str, ranked: list[str], *, abstention: bool = False) -> Outcome:
    return Outcome(question, "user", abstention, frozenset({"gold"}), tuple(ranked))


def test_the_earlier_first_gold_session_wins() -> None:
    ours = [outcome("1", ["gold"]), outcome("2", ["x", "gold"]), outcome("3", ["x", "y", "gold"])]
    peer = {"1": ["x", "gold"], "2": ["y", "gold"], "3": ["gold"]}
    assert compare(ours, peer) == Paired(wins=1, ties=1, losses=1)


def test_ranks_beyond_ten_are_alike_on_both_sides() -> None:
    ours = [outcome("1", [*TEN, "gold"]), outcome("2", []), outcome("3", [*TEN[:9], "gold"])]
    peer = {"1": TEN, "2": [*TEN, "x", "gold"], "3": TEN}
    assert compare(ours, peer) == Paired(wins=1, ties=2, losses=0)


def test_only_questions_of_both_sides_without_abstention_are_paired() -> None:
    ours = [outcome("1", ["gold"]), outcome("2_abs", ["gold"], abstention=True), outcome("3", ["gold"])]
    paired = compare(ours, {"1": ["gold"], "2_abs": [], "4": ["gold"]})
    assert (paired, paired.n) == (Paired(wins=0, ties=1, losses=0), 1)


def test_an_agentmemory_file_is_read_by_question(tmp_path: Path) -> None:
    path = tmp_path / "peer.json"
    row = {"question_id": "1", "retrieved_session_ids": ["a", "b"], "mrr": 1}
    path.write_text(json.dumps({"mode": "bm25", "per_question": [row]}))
    assert read_agentmemory(path) == {"1": ["a", "b"]}


@pytest.mark.parametrize("value", [[], {}, {"per_question": [{"question_id": "1"}]}, {"per_question": 3}])
def test_another_file_is_refused(tmp_path: Path, value: object) -> None:
    path = tmp_path / "peer.json"
    path.write_text(json.dumps(value))
    with pytest.raises(BenchError, match="not an agentmemory result file"):
        read_agentmemory(path)
