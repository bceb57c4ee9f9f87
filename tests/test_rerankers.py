"""Diversification over sessions, and what every registered reranker keeps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from indexes import by_position, layout, ranked, rows

from memserver.rerankers import RERANKERS
from memserver.rerankers.sessions import Sessions
from memserver.types import Ranked

LAYOUT = layout(rows(*[(session, "text") for session in "aaaabbcaab"]))
LISTS = st.dictionaries(st.integers(0, 9), st.floats(0, 1), max_size=10).map(
    lambda scores: ranked(dict(sorted(scores.items(), key=lambda item: -item[1])))
)


def test_three_hits_of_a_session_come_first_then_the_rest_in_order() -> None:
    found = Sessions(per_session=3).rerank(ranked({0: 0.9, 1: 0.8, 2: 0.7, 3: 0.6, 4: 0.5, 7: 0.4, 6: 0.3}), LAYOUT)
    assert by_position(found) == pytest.approx({0: 0.9, 1: 0.8, 2: 0.7, 4: 0.5, 6: 0.3, 3: 0.6 - 1, 7: 0.4 - 1})
    assert found.entries.tolist() == [0, 1, 2, 4, 6, 3, 7]


def test_zero_leaves_the_order() -> None:
    given = ranked({0: 0.9, 1: 0.8, 2: 0.7})
    assert Sessions(per_session=0).rerank(given, LAYOUT) is given


@given(LISTS, st.integers(1, 4))
def test_the_first_hits_hold_no_session_more_often_than_allowed(given: Ranked, per_session: int) -> None:
    found = Sessions(per_session).rerank(given, LAYOUT)
    first = [entry for entry, score in by_position(found).items() if score >= 0]
    sessions = [int(LAYOUT.sessions[entry]) for entry in first]
    assert all(sessions.count(session) <= per_session for session in sessions)


@pytest.mark.parametrize("name", RERANKERS)
@given(given=LISTS)
def test_nothing_is_lost_or_added_and_scores_descend(name: str, given: Ranked) -> None:
    found = RERANKERS[name]().rerank(given, LAYOUT)
    assert sorted(found.entries.tolist()) == sorted(given.entries.tolist())
    assert found.scores.tolist() == sorted(found.scores, reverse=True)
