"""How messages form groups."""

import numpy as np
import pytest
from indexes import layout, rows

from memserver.types import Layout, View
from memserver.users import UserLayout
from memserver.views import VIEWS


@pytest.fixture
def two_sessions() -> UserLayout:
    """Positions 0 a, 1 b, 2 a, 3 a: the sessions alternate."""
    return layout(rows(("a", "one"), ("b", "two"), ("a", "three"), ("a", "four")))


def groups(view: View, messages: Layout) -> list[list[int]]:
    """The messages of each group."""
    made: list[list[int]] = [[] for _ in range(view.count(messages))]
    for index, group in zip(*view.memberships(messages, np.arange(len(messages), dtype=np.int32)), strict=True):
        made[group].append(int(index))
    return [sorted(group) for group in made]


def test_a_chunk_group_is_one_message(two_sessions: UserLayout) -> None:
    assert groups(VIEWS["chunk"](), two_sessions) == [[0], [1], [2], [3]]


def test_a_context_group_is_a_message_with_its_neighbours_in_the_same_session(two_sessions: UserLayout) -> None:
    assert groups(VIEWS["context"](), two_sessions) == [[0, 2], [1], [0, 2, 3], [2, 3]]


def test_a_session_group_is_all_of_its_messages(two_sessions: UserLayout) -> None:
    assert groups(VIEWS["session"](), two_sessions) == [[0, 2, 3], [1]]


@pytest.mark.parametrize("name", VIEWS)
def test_every_message_belongs_to_its_home_group(name: str, two_sessions: UserLayout) -> None:
    view = VIEWS[name]()
    members = groups(view, two_sessions)
    assert all(message in members[home] for message, home in enumerate(view.home(two_sessions)))


@pytest.mark.parametrize("name", VIEWS)
def test_a_part_of_the_messages_gives_their_part_of_the_groups(name: str, two_sessions: UserLayout) -> None:
    view = VIEWS[name]()
    indexes, found = view.memberships(two_sessions, np.array([3], np.int32))
    assert set(indexes.tolist()) == {0}
    assert sorted(found.tolist()) == [group for group, members in enumerate(groups(view, two_sessions)) if 3 in members]
