from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark.data import Case, Session, Turn, load_cases
from benchmark.errors import BenchError
from benchmark.play import PLATFORM, Style, play, rank_sessions
from memserver.preparing import hit_id
from memserver.types import Hit

TINY = Path(__file__).parent / "longmemeval_tiny.json"


class Recorder:
    """A memory that keeps what it is sent and returns its kept messages, the last one first."""

    def __init__(self) -> None:
        self.adds: list[dict[str, Any]] = []
        self.searches: list[dict[str, Any]] = []

    def add(self, body: bytes) -> None:
        self.adds.append(json.loads(body))

    def search(self, body: bytes) -> list[Hit]:
        self.searches.append(json.loads(body))
        ids = [
            hit_id(add["user_id"], add["request_id"], position)
            for add in self.adds
            for position, _ in enumerate(message for message in add["messages"] if message["content"].strip())
        ]
        return [Hit(id, f"text {rank}", 1 / rank) for rank, id in enumerate(reversed(ids), 1)]

    def describe(self) -> Mapping[str, object]:
        return {}


DOCUMENTS = Style(documents=True, top_k=20)


def played(case: Case, seed: int = 0, style: Style = PLATFORM) -> Recorder:
    recorder = Recorder()
    play(case, recorder, seed, style)
    return recorder


def renamed(case: Case) -> Case:
    """The same case with every id of the data set replaced, gold ones too."""
    return dataclasses.replace(
        case,
        id=f"renamed {case.id}",
        sessions=tuple(dataclasses.replace(session, id=f"s{place}") for place, session in enumerate(case.sessions)),
        gold=frozenset(f"s{place}" for place, session in enumerate(case.sessions) if session.id in case.gold),
        answer="another answer",
        evidence=frozenset(),
    )


# --- what the memory sees ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", load_cases(TINY), ids=lambda case: case.id)
def test_nothing_but_names_texts_roles_dates_and_the_question_reaches_the_memory(case: Case) -> None:
    recorder = played(case)
    assert {key for add in recorder.adds for key in add} == {"request_id", "user_id", "session_id", "messages"}
    assert [message for add in recorder.adds for message in add["messages"]] == [
        {"role": turn.role, "content": turn.content, "timestamp": session.timestamp}
        for session in case.sessions
        for turn in session.turns
    ]
    assert recorder.searches == [{"user_id": recorder.adds[0]["user_id"], "query": case.question, "top_k": 100}]


def test_no_id_no_answer_and_no_label_of_the_data_set_is_sent() -> None:
    items = json.loads(TINY.read_text())
    secrets = {"SECRET-ANSWER", "has_answer", "_abs"}
    secrets |= {item["question_id"] for item in items} | {item["question_date"] for item in items}
    secrets |= {session for item in items for session in item["haystack_session_ids"]}
    sent = json.dumps([(recorder.adds, recorder.searches) for recorder in map(played, load_cases(TINY))])
    assert [secret for secret in sorted(secrets) if secret in sent] == []


@pytest.mark.parametrize("style", [PLATFORM, DOCUMENTS])
@pytest.mark.parametrize("case", load_cases(TINY), ids=lambda case: case.id)
def test_other_ids_and_answers_in_the_data_set_change_nothing_that_is_sent(case: Case, style: Style) -> None:
    before, after = played(case, style=style), played(renamed(case), style=style)
    assert (before.adds, before.searches) == (after.adds, after.searches)


def test_a_session_as_a_document_is_one_undated_message_of_labelled_lines() -> None:
    recorder = played(load_cases(TINY)[1], style=DOCUMENTS)
    assert [len(add["messages"]) for add in recorder.adds] == [1, 1, 1, 1]
    assert recorder.adds[1]["messages"] == [
        {
            "role": "user",
            "content": "user: My printer shows error E-217.\nassistant: Take the cartridge out and put it back in.",
        }
    ]
    assert recorder.searches[0]["top_k"] == 20


def test_timestamps_are_the_dates_of_the_sessions_in_milliseconds() -> None:
    first = played(load_cases(TINY)[0]).adds[0]["messages"][0]
    assert first["timestamp"] == datetime(2023, 5, 20, 2, 21, tzinfo=UTC).timestamp() * 1000


def test_a_session_goes_in_adds_of_at_most_twenty_messages_under_one_name() -> None:
    turns = tuple(Turn("user", f"turn {number}") for number in range(45))
    adds = played(Case(0, "q", "t", "?", (Session("a", 0, turns), Session("b", 0, turns[:1])), frozenset({"a"}))).adds
    assert [len(add["messages"]) for add in adds] == [20, 20, 45 - 2 * 20, 1]
    assert [message["content"] for add in adds[:3] for message in add["messages"]] == [turn.content for turn in turns]
    assert len({add["session_id"] for add in adds[:3]}) == 1
    assert adds[3]["session_id"] != adds[0]["session_id"]
    assert len({add["request_id"] for add in adds}) == 4


def test_names_follow_the_seed_the_place_and_what_is_played() -> None:
    case = load_cases(TINY)[0]
    variants = [
        played(case),
        played(case, seed=1),
        played(dataclasses.replace(case, index=1)),
        played(dataclasses.replace(case, sessions=case.sessions[:2])),
    ]
    assert played(case).adds == variants[0].adds
    assert len({recorder.adds[0]["user_id"] for recorder in variants}) == 4


# --- what comes back --------------------------------------------------------------------------------------------------


def test_hits_are_told_apart_by_their_ids_blank_turns_left_out() -> None:
    found = play(load_cases(TINY)[0], Recorder())
    assert found.ranked == ("chat_2", "answer_bread", "chat_1")
    assert found.turns == ((2, 1), (2, 0), (1, 2), (1, 0), (0, 1), (0, 0))  # of session 1, turn 1 is blank
    assert found.contents[:2] == ("text 1", "text 2")
    assert len(found.add_ms) == 3


def test_turns_are_counted_across_the_adds_of_a_session() -> None:
    turns = tuple(Turn("user", f"turn {number}" if number != 3 else " ") for number in range(22))
    found = play(Case(0, "q", "t", "?", (Session("a", 0, turns),), frozenset({"a"})), Recorder())
    assert found.turns == tuple((0, number) for number in reversed(range(22)) if number != 3)


def test_hits_that_are_documents_are_no_turns() -> None:
    found = play(load_cases(TINY)[0], Recorder(), style=DOCUMENTS)
    assert (found.ranked, found.turns) == (("chat_2", "answer_bread", "chat_1"), None)


def test_a_hit_that_was_never_added_is_an_error() -> None:
    with pytest.raises(BenchError, match="never added"):
        rank_sessions([Hit("foreign", "", 1.0)], {"1": "a"})


def test_a_session_scores_its_best_hit_and_shares_of_the_next_two() -> None:
    hits = [Hit("1", "", 0.9), Hit("2", "", 0.8), Hit("3", "", 0.8), Hit("4", "", 0.8), Hit("5", "", 0.8)]
    session_of = {"1": "single", "2": "many", "3": "many", "4": "many", "5": "many"}
    assert 0.8 * (1 + 0.3 + 0.15) > 0.9
    assert rank_sessions(hits, session_of) == ["many", "single"]


def test_a_fourth_hit_adds_nothing() -> None:
    hits = [Hit(str(number), "", 0.5) for number in range(4)] + [Hit("best", "", 0.74)]
    assert 0.5 * (1 + 0.3 + 0.15) < 0.74 < 0.5 * (1 + 0.3 + 0.15 + 0.15)
    assert rank_sessions(hits, dict.fromkeys("0123", "many") | {"best": "single"}) == ["single", "many"]


def test_sessions_of_one_score_stay_in_the_order_of_their_first_hits() -> None:
    hits = [Hit("1", "", 0.5), Hit("2", "", 0.5), Hit("3", "", 0.5)]
    assert rank_sessions(hits, {"1": "z", "2": "a", "3": "m"}) == ["z", "a", "m"]


def test_a_hit_that_was_put_off_below_zero_harms_nobody() -> None:
    hits = [Hit("1", "", 0.5), Hit("2", "", 0.4), Hit("3", "", 0.9 - 1)]
    assert rank_sessions(hits, {"1": "a", "2": "b", "3": "a"}) == ["a", "b"]


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.floats(-1, 1)), max_size=20))
def test_each_session_with_a_hit_is_ranked_once(found: list[tuple[str, float]]) -> None:
    hits = [Hit(str(place), "", score) for place, (_, score) in enumerate(found)]
    ranked = rank_sessions(hits, {str(place): session for place, (session, _) in enumerate(found)})
    assert sorted(ranked) == sorted({session for session, _ in found})
