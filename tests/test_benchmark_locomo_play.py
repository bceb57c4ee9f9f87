from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from math import log2
from pathlib import Path
from typing import Any

import pytest

from benchmark.errors import BenchError
from benchmark.locomo_data import Conversation, Question, Session, Turn, load_conversations
from benchmark.locomo_play import Outcome, play, requests
from memserver.preparing import hit_id
from memserver.types import Hit

TINY = Path(__file__).parent / "locomo_tiny.json"
FIRST, SECOND = load_conversations(TINY)


class Recorder:
    """A memory that keeps what it is sent and returns all of its messages, the last one first."""

    def __init__(self) -> None:
        self.adds: list[dict[str, Any]] = []
        self.searches: list[dict[str, Any]] = []

    def add(self, body: bytes) -> None:
        assert not self.searches, "all Adds come before the first Search"
        self.adds.append(json.loads(body))

    def search(self, body: bytes) -> list[Hit]:
        self.searches.append(json.loads(body))
        found = [
            (hit_id(add["user_id"], add["request_id"], position), message["content"])
            for add in self.adds
            for position, message in enumerate(add["messages"])
        ]
        return [Hit(id, content, 1 / rank) for rank, (id, content) in enumerate(reversed(found), 1)]

    def describe(self) -> Mapping[str, object]:
        return {}


def played(conversation: Conversation, seed: int = 0) -> Recorder:
    recorder = Recorder()
    play(conversation, recorder, seed)
    return recorder


def renamed(conversation: Conversation) -> Conversation:
    """The same conversation with every id of the data set replaced, evidence too."""
    name = {turn.id: f"renamed {turn.id}" for session in conversation.sessions for turn in session.turns}
    sessions = tuple(
        Session(f"renamed {session.id}", session.timestamp, tuple(dataclasses.replace(t, id=name[t.id]) for t in session.turns))
        for session in conversation.sessions
    )
    questions = tuple(
        dataclasses.replace(question, id=f"renamed {question.id}", gold=frozenset(name[turn] for turn in question.gold))
        for question in conversation.questions
    )
    return dataclasses.replace(conversation, id="renamed", sessions=sessions, questions=questions)


# --- what the memory sees ---------------------------------------------------------------------------------------------


def test_labelled_texts_roles_and_dates_are_added_and_each_question_is_searched_once() -> None:
    recorder = played(FIRST)
    assert {key for add in recorder.adds for key in add} == {"request_id", "user_id", "session_id", "messages"}
    assert [message for add in recorder.adds for message in add["messages"]] == [
        {"role": turn.role, "content": turn.content, "timestamp": session.timestamp}
        for session in FIRST.sessions
        for turn in session.turns
    ]
    user = recorder.adds[0]["user_id"]
    assert recorder.searches == [{"user_id": user, "query": question.text, "top_k": 100} for question in FIRST.asked]
    assert len(recorder.adds) + len(recorder.searches) == requests(FIRST)


def test_no_id_no_answer_and_nothing_but_the_turns_of_the_data_set_is_sent() -> None:
    secrets = ["SECRET", "tiny-1", "session_1", "D1:", "D10:", "multi-hop", "single-hop", "temporal", "adversarial"]
    sent = json.dumps([(recorder.adds, recorder.searches) for recorder in map(played, (FIRST, SECOND))])
    assert [secret for secret in secrets if secret in sent] == []


@pytest.mark.parametrize("conversation", [FIRST, SECOND], ids=lambda conversation: conversation.id)
def test_renaming_every_id_of_the_data_set_changes_nothing_that_is_sent(conversation: Conversation) -> None:
    before, after = played(conversation), played(renamed(conversation))
    assert (before.adds, before.searches) == (after.adds, after.searches)


def test_a_session_goes_in_adds_of_at_most_twenty_messages_under_one_name() -> None:
    turns = tuple(Turn(f"D1:{number}", "user", f"A: turn {number}") for number in range(1, 46))
    last = (Turn("D2:1", "user", "A: more"),)
    adds = played(Conversation(0, "c", (Session("s1", 0, turns), Session("s2", 1, last)), ())).adds
    assert [len(add["messages"]) for add in adds] == [20, 20, 45 - 2 * 20, 1]
    assert len({add["session_id"] for add in adds}) == 2
    assert len({add["request_id"] for add in adds}) == 4


def test_names_follow_the_seed_the_place_and_what_is_played() -> None:
    turns = FIRST.sessions[0].turns
    reworded = dataclasses.replace(FIRST.sessions[0], turns=(dataclasses.replace(turns[0], content="Ines: No."), *turns[1:]))
    variants = [
        played(FIRST),
        played(FIRST, seed=1),
        played(dataclasses.replace(FIRST, index=1)),
        played(dataclasses.replace(FIRST, sessions=FIRST.sessions[:2], questions=())),
        played(dataclasses.replace(FIRST, sessions=(reworded, *FIRST.sessions[1:]))),
    ]
    assert played(FIRST).adds == variants[0].adds
    assert len({recorder.adds[0]["user_id"] for recorder in variants}) == len(variants)


# --- what comes back --------------------------------------------------------------------------------------------------


def test_hits_are_turns_and_their_sessions_by_the_ids_of_the_data_set() -> None:
    outcome = play(FIRST, Recorder())[0]
    assert outcome.turns == ("D10:2", "D10:1", "D2:2", "D2:1", "D1:3", "D1:2", "D1:1")
    assert outcome.sessions == ("session_10", "session_2", "session_1")
    assert outcome.contents[0] == "Ines: Good for her. I sold the cello, by the way."


def test_a_hit_that_was_never_added_is_an_error() -> None:
    class Foreign(Recorder):
        def search(self, body: bytes) -> list[Hit]:
            return [Hit("foreign", "", 1.0)]

    with pytest.raises(BenchError, match="never added"):
        play(FIRST, Foreign())


# --- what it is worth -------------------------------------------------------------------------------------------------

TURNS = ("D3:1", "D1:1", "D3:2", "D2:1", "D1:2", "D4:1")
GOLD = frozenset({"D1:1", "D4:1", "D9:9"})


def outcome(answer: str = "a cello", contents: tuple[str, ...] = ("x",) * 6) -> Outcome:
    question = Question("c/0", "multi-hop", "?", answer, GOLD)
    return Outcome(question, frozenset({"s1", "s4", "s9"}), TURNS, ("s3", "s1", "s2", "s4"), contents)


def test_turns_are_the_headline_and_sessions_stand_beside_them() -> None:
    metrics = outcome().row()["metrics"]
    ideal = 1 / log2(2) + 1 / log2(3) + 1 / log2(4)
    expected = {
        "any@5": 1,
        "recall@5": 1 / 3,
        "recall@10": 2 / 3,
        "recall@100": 2 / 3,
        "mrr": 1 / 2,
        "ndcg@10": (1 / log2(3) + 1 / log2(7)) / ideal,
        "session_any@5": 1,
        "session_recall@5": 2 / 3,
        "session_mrr": 1 / 2,
        "session_ndcg@10": (1 / log2(3) + 1 / log2(5)) / ideal,
    }
    assert {name: metrics[name] for name in expected} == pytest.approx(expected)


def test_a_row_names_sessions_and_the_ranks_of_what_was_found() -> None:
    row = outcome().row()
    assert (row["id"], row["type"], row["scored"]) == ("c/0", "multi-hop", True)
    assert (row["gold"], row["ranked"], row["gold_ranks"]) == (["s1", "s4", "s9"], ["s3", "s1", "s2", "s4"], [2, 4])
    assert row["turn"] == {"gold": 3, "gold_ranks": [2, 6]}


def test_evidence_counts_the_gold_turns_wholly_within_the_budgets() -> None:
    metrics = outcome(contents=("x" * 49_000, "x" * 900, "x" * 4 * 117_760, *"xxx")).row()["metrics"]
    assert metrics["evidence@50000chars"] == 1 / 3  # 49,000 + 1 + 900 characters
    assert metrics["evidence@117760tokens"] == 1 / 3  # the third content ends both
    assert outcome().row()["metrics"]["evidence@50000chars"] == 2 / 3


@pytest.mark.parametrize(("answer", "expected"), [("a cello", 1.0), ("a harp", 0.0), ("yes", None), ("", None)])
def test_containment_looks_at_the_contents_and_is_absent_where_undefined(answer: str, expected: float | None) -> None:
    contents = ("I sold the", "cello, by the way", *"xxxx")
    assert outcome(answer, contents).row()["metrics"].get("containment") == expected


def test_containment_sees_only_what_the_answer_model_sees() -> None:
    contents = ("x" * 49_990, "I sold the cello", *"xxxx")
    assert outcome("cello", contents).row()["metrics"]["containment"] == 0
