"""What every reranker keeps, and what each of them does, as visible arithmetic."""

from datetime import date
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from indexes import by_position, query, ranked, row, rows, scene

from memserver.dates import periods
from memserver.errors import ConfigError
from memserver.rerankers import RERANKERS
from memserver.rerankers.answers import Answers
from memserver.rerankers.cross_encoder import CrossEncoder
from memserver.rerankers.periods import Periods
from memserver.rerankers.sessions import Sessions
from memserver.rerankers.speakers import Speakers
from memserver.rerankers.updates import Updates
from memserver.types import Loadable, Message, Query, Ranked, Traits

DAY = 86_400_000  # milliseconds
ROWS = rows(*[(session, "text") for session in "aaaabbcaab"])
MESSAGES = [Message("user", "text") for _ in ROWS]
LISTS = st.dictionaries(st.integers(0, 9), st.floats(0, 1), max_size=10).map(
    lambda scores: ranked(dict(sorted(scores.items(), key=lambda item: -item[1])))
)


@pytest.mark.parametrize("name", RERANKERS)
@given(given=LISTS)
def test_nothing_is_lost_or_added_and_the_given_list_stays_as_it_was(name: str, given: Ranked) -> None:
    before = by_position(given)
    found = RERANKERS[name]().rerank(given, scene(ROWS, query("text"), MESSAGES))
    assert sorted(found.entries.tolist()) == sorted(given.entries.tolist())
    assert np.isfinite(found.scores).all()
    assert by_position(given) == before


# --- sessions ---------------------------------------------------------------------------------------------------------


def test_each_hit_of_a_session_is_held_back_by_the_better_ones() -> None:
    found = Sessions(discount=0.1).rerank(ranked({0: 0.9, 1: 0.8, 4: 0.7, 2: 0.6}), scene(ROWS))  # sessions a, a, b, a
    assert by_position(found) == pytest.approx({0: 0.9, 1: 0.8 / 1.1, 4: 0.7, 2: 0.6 / 1.2})


def test_no_discount_leaves_the_scores() -> None:
    found = Sessions(discount=0).rerank(ranked({0: 0.9, 1: 0.8}), scene(ROWS))
    assert by_position(found) == {0: 0.9, 1: 0.8}


# --- speakers ---------------------------------------------------------------------------------------------------------

SAID = [
    row(1, "Ann: I moved", traits=Traits(12, ("ann",))),
    row(2, "Bob: Ann moved", traits=Traits(14, ("bob",))),
    row(3, "it is late"),
]


def test_what_the_named_person_says_gains() -> None:
    found = Speakers(boost=0.5).rerank(ranked({1: 0.9, 0: 0.6, 2: 0.3}), scene(SAID, query("When did Ann move?")))
    assert by_position(found) == pytest.approx({1: 0.9 / 1.5, 0: 0.6 * 1.5 / 1.5, 2: 0.3 / 1.5})


def test_a_question_that_names_nobody_changes_nothing() -> None:
    given = ranked({1: 0.9, 0: 0.6})
    assert Speakers().rerank(given, scene(SAID, query("Who moved?"))) is given


# --- answers ----------------------------------------------------------------------------------------------------------


def test_a_question_passes_a_part_of_its_score_on_to_the_message_behind_it() -> None:
    talk = [row(1, "q", traits=Traits(9, ("ann",), asking=1.0)), row(2, "a", traits=Traits(9, ("bob",)))]
    found = Answers(discount=0.2, gain=0.25).rerank(ranked({0: 0.8, 1: 0.4}), scene(talk))
    assert by_position(found) == pytest.approx({0: 0.8 * 0.8 / 1.25, 1: (0.4 + 0.25 * 0.8) / 1.25})


def test_what_nobody_by_name_asks_stays_as_it_is() -> None:
    talk = [row(1, "q", traits=Traits(9, asking=1.0)), row(2, "a", traits=Traits(9))]
    found = Answers(discount=0.2, gain=0.25).rerank(ranked({0: 0.8, 1: 0.4}), scene(talk))
    assert by_position(found) == pytest.approx({0: 0.8 / 1.25, 1: 0.4 / 1.25})


# --- periods ----------------------------------------------------------------------------------------------------------


def dated(*days: date | None) -> list[Any]:
    start = date(1970, 1, 1)
    stamps = [None if day is None else (day - start).days * DAY for day in days]
    return [row(seq, "text", timestamp=stamp) for seq, stamp in enumerate(stamps, 1)]


def test_messages_of_the_month_asked_for_gain_and_those_of_the_week_behind_it_half() -> None:
    stored = dated(date(2023, 5, 31), date(2023, 6, 7), date(2023, 6, 8), None)
    asked = Query({}, np.zeros((0, 0), np.float32), periods=periods("What happened in May 2023?"))
    found = Periods(boost=0.4, grace=7).rerank(ranked({0: 0.5, 1: 0.5, 2: 0.5, 3: 0.5}), scene(stored, asked))
    assert by_position(found) == pytest.approx({0: 0.5 * 1.4 / 1.4, 1: 0.5 * 1.2 / 1.4, 2: 0.5 / 1.4, 3: 0.5 / 1.4})


def test_a_question_without_a_date_changes_nothing() -> None:
    given = ranked({0: 0.5})
    assert Periods().rerank(given, scene(dated(date(2023, 5, 31)))) is given


# --- updates ----------------------------------------------------------------------------------------------------------


def facts(*texts: str, role: str = "user") -> tuple[list[Any], list[Message]]:
    messages = [Message(role, text, DAY * day) for day, text in enumerate(texts)]
    return [row(seq, message.text, timestamp=message.timestamp) for seq, message in enumerate(messages, 1)], messages


def test_the_later_of_two_statements_alike_gets_the_better_score_and_the_earlier_stays() -> None:
    stored, messages = facts("my gym costs 40 dollars a month", "my gym costs 55 dollars a month", "my gym is closed")
    found = Updates().rerank(ranked({0: 0.9, 2: 0.8, 1: 0.7}), scene(stored, messages=messages))
    assert by_position(found) == {0: 0.7, 2: 0.8, 1: 0.9}


def test_one_that_hardly_answers_the_question_takes_nothing() -> None:
    stored, messages = facts("the apple story is long", "the garden story is long")
    found = Updates(nearness=0.5).rerank(ranked({0: 0.9, 1: 0.4}), scene(stored, messages=messages))  # .4 < .5 * .9
    assert by_position(found) == {0: 0.9, 1: 0.4}


def test_a_greeting_and_another_role_replace_nothing() -> None:
    stored, messages = facts("Thanks, Ann!", "Thanks, Bob!", "I like red tea best", "I like red wine best")
    messages[3] = Message("assistant", messages[3].text, messages[3].timestamp)
    scores = {0: 0.9, 1: 0.8, 2: 0.7, 3: 0.6}
    assert by_position(Updates().rerank(ranked(scores), scene(stored, messages=messages))) == scores


# --- cross_encoder ----------------------------------------------------------------------------------------------------


class Reader:
    """Scores a pair by the length of its message."""

    def predict(self, pairs: list[tuple[str, str]], **_: object) -> list[float]:
        return [float(len(message)) for _, message in pairs]


def test_the_first_hits_follow_the_cross_encoder_and_the_others_stay_behind_them() -> None:
    stored, messages = facts("a", "ccc", "bb", "dddd")
    encoder = CrossEncoder("any", top=3)
    encoder._loaded.append(cast("Any", Reader()))
    found = by_position(encoder.rerank(ranked({0: 0.9, 1: 0.8, 2: 0.7, 3: 0.6}), scene(stored, messages=messages)))
    assert sorted(found, key=lambda entry: -found[entry]) == [1, 2, 0, 3]


def test_a_cross_encoder_without_a_model_stops_the_start() -> None:
    encoder = CrossEncoder()
    assert isinstance(encoder, Loadable)
    with pytest.raises(ConfigError, match="MEMSERVER_CROSS_ENCODER_MODEL"):
        encoder.load()


def test_a_cross_encoder_that_is_not_there_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ConfigError, match="could be loaded"):
        CrossEncoder("/nowhere/to/be/found").load()
