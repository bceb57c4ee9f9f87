from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmark.controls import Control, at_random, averaged, gold_of_cases, gold_of_conversations, nothing, oracle
from benchmark.data import Case, load_cases
from benchmark.locomo_data import load_conversations
from benchmark.longmemeval import outcome_of
from benchmark.systems import Row
from memserver.config import Settings
from memserver.preparing import hit_id

HERE = Path(__file__).parent
CASES = load_cases(HERE / "longmemeval_tiny.json")


def add(control: Control, user: str, request: str, *contents: str) -> None:
    messages = [{"role": "user", "content": content, "timestamp": 0} for content in contents]
    control.add(json.dumps({"user_id": user, "session_id": "s", "request_id": request, "messages": messages}).encode())


def ids(control: Control, user: str = "u", query: str = "q", top_k: int = 100) -> list[str]:
    return [hit.id for hit in control.search(json.dumps({"user_id": user, "query": query, "top_k": top_k}).encode())]


def test_nothing_returns_nothing() -> None:
    control = Control(nothing, Settings())
    add(control, "u", "r", "a message")
    assert ids(control) == []


def test_random_history_is_all_of_the_users_messages_once_in_another_order() -> None:
    control = Control(at_random(seed=0), Settings())
    add(control, "u", "r1", *map(str, range(20)))
    add(control, "u", "r2", *map(str, range(20)))
    add(control, "another user", "r1", "x")
    stored = [hit_id("u", request, position) for request in ("r1", "r2") for position in range(20)]
    assert sorted(ids(control)) == sorted(stored)
    assert ids(control) != stored


def test_random_history_follows_its_seed_and_the_query() -> None:
    controls = [Control(at_random(seed), Settings()) for seed in (0, 0, 1)]
    for control in controls:
        add(control, "u", "r", *map(str, range(20)))
    assert ids(controls[0]) == ids(controls[1])
    assert ids(controls[0]) != ids(controls[2])
    assert ids(controls[0]) != ids(controls[0], query="another")


def test_a_control_returns_no_more_than_the_product_may() -> None:
    control = Control(at_random(seed=0), Settings())
    add(control, "u", "r", *(letter * 20_000 for letter in "abcd"))
    assert len(ids(control)) == 50_000 // 20_000
    assert len(ids(control, top_k=1)) == 1


def test_a_control_presents_as_the_settings_say() -> None:
    control = Control(at_random(seed=0), Settings(result_chars=20_000, content="raw"))
    add(control, "u", "r", *(letter * 9_999 for letter in "abcd"))
    hits = control.search(json.dumps({"user_id": "u", "query": "q", "top_k": 100}).encode())
    assert [len(hit.content) for hit in hits] == [9_999, 9_999]  # no date in front; 2 x 9,999 and the newline fit


def test_draws_are_averaged_metric_by_metric_and_ranked_by_the_mean_reciprocal_rank() -> None:
    first, second = (
        Row("t", True, frozenset({"g"}), ("g",), {"mrr@10": mrr, "any@1": any1}) for mrr, any1 in ((1, 1), (1 / 5, 0))
    )
    row = averaged([{"q": first}, {"q": second}])["q"]
    assert row.metrics == {"mrr@10": pytest.approx((1 + 1 / 5) / 2), "any@1": (1 + 0) / 2}
    assert row.rank == round(1 / 0.6)


def test_the_oracle_returns_what_holds_the_answer_to_this_question_and_nothing_else() -> None:
    control = Control(oracle({"q": {(0, "yes")}, "other": {(0, "no")}}), Settings())
    add(control, "u", "r", "no", "yes", "maybe", "yes")
    assert ids(control) == [hit_id("u", "r", 1), hit_id("u", "r", 3)]
    assert ids(control, query="unknown") == []


def test_hits_are_scored_by_rank_as_any_memory_scores_them() -> None:
    control = Control(oracle({"q": {(0, "yes")}}), Settings())
    add(control, "u", "r", "yes", "yes")
    hits = control.search(json.dumps({"user_id": "u", "query": "q", "top_k": 9}).encode())
    assert [hit.score for hit in hits] == [1, 1 / 2]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_oracle_ranks_all_gold_sessions_of_a_case_and_no_other(case: Case) -> None:
    assert set(outcome_of(case, Control(oracle(gold_of_cases(CASES)), Settings())).ranked) == case.gold


def test_marked_turns_are_the_gold_of_their_session() -> None:
    session = CASES[0].sessions[1]
    assert gold_of_cases(CASES)[CASES[0].question] == {(session.timestamp, session.turns[0].content)}


def test_the_gold_of_a_locomo_question_are_its_evidence_turns() -> None:
    conversations = load_conversations(HERE / "locomo_tiny.json")
    gold = gold_of_conversations(conversations)
    said = {turn.id: (session.timestamp, turn.content) for session in conversations[0].sessions for turn in session.turns}
    for question in conversations[0].asked:
        assert gold[question.text] >= {said[turn] for turn in question.gold} != set()
