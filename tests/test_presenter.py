"""What a hit shows, and the length budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memserver.presenter import JOINT, NEIGHBOUR, Presenter
from memserver.traits import OVERLAP
from memserver.types import Hit, Image, Message, Ranked, Row, StoredMessage, Traits
from memserver.users import UserLayout

MAY_8 = 1_683_504_000_000  # 2023-05-08T00:00:00Z
RAW = Presenter("raw", resolve_dates=False, fold_neighbours=False)
DATED = Presenter("dated", resolve_dates=False, fold_neighbours=False)
RESOLVING = replace(DATED, resolve_dates=True)
FOLDING = replace(DATED, fold_neighbours=True)
CUT_AT = 8000  # characters


def said(*texts: str) -> list[Message]:
    return [Message("user", text) for text in texts]


def hits(
    presenter: Presenter,
    messages: Sequence[Message],
    ranking: Sequence[int] | None = None,
    budget: int = 0,
    limit: int = 100,
    cut: Sequence[int] = (),
    gone: Sequence[int] = (),
) -> list[Hit]:
    """Messages of one session presented in the order of ``ranking``, their positions; hit ``n``'s id is ``id<n>``.

    ``cut``: positions of messages that go on from the one before; ``gone``: of those that are stored no more.
    """
    stored = {at: StoredMessage(at + 1, f"id{at}", "s", message) for at, message in enumerate(messages)}
    layout = UserLayout()
    layout.add([_row(stored[at], f"id{at - 1}" if at in cut else None) for at in stored])
    order = np.array(range(len(messages)) if ranking is None else ranking, np.int32)

    def fetch(positions: Sequence[int], max_image_bytes: int) -> dict[int, StoredMessage]:
        found = {}
        for at in positions:
            size = sum(len(part.data) for part in stored[at].message.parts if isinstance(part, Image))
            if at not in gone and size <= max_image_bytes:
                max_image_bytes -= size
                found[at] = stored[at]
        return found

    return presenter.present(Ranked(order, 1 / np.arange(1.0, len(order) + 1)), layout, fetch, budget, limit)


def _row(stored: StoredMessage, continues: str | None) -> Row:
    message = stored.message
    traits = Traits(len(message.text), continues=continues)
    nothing, no_vectors = np.empty(0, np.uint16), np.empty((0, 0), np.float32)
    return Row(stored.seq, stored.id, stored.session_id, message.timestamp, traits, (), nothing, no_vectors)


def ids(found: Sequence[Hit]) -> list[str]:
    return [hit.id for hit in found]


def contents(found: Sequence[Hit]) -> list[object]:
    return [hit.content for hit in found]


# --- one hit ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "dated", "raw"),
    [
        (Message("user", " hi ", MAY_8), "[2023-05-08] user: hi", " hi "),
        (Message("user", "hi"), "user: hi", "hi"),
        (Message("user", "Caroline: hi", MAY_8), "[2023-05-08] Caroline: hi", "Caroline: hi"),
        (Message("user", "Caroline: hi"), "Caroline: hi", "Caroline: hi"),
        (Message("user", "hi", 10**18), "user: hi", "hi"),
    ],
)
def test_content_by_style(message: Message, dated: str, raw: str) -> None:
    assert contents(hits(DATED, [message])) == [dated]
    assert contents(hits(RAW, [message])) == [raw]


def test_created_at_is_the_messages_own_time_or_absent() -> None:
    times = [MAY_8 + 1, None, 10**18, -1]
    shown = hits(DATED, [Message("user", "a", time) for time in times])
    assert [hit.created_at for hit in shown] == ["2023-05-08T00:00:00.001Z", None, None, "1969-12-31T23:59:59.999Z"]


def test_scores_are_those_of_the_ranking() -> None:
    assert [(hit.id, hit.score) for hit in hits(DATED, said("a", "b"), ranking=[1, 0])] == [("id1", 1 / 1), ("id0", 1 / 2)]


def test_a_message_that_is_gone_is_left_out() -> None:
    assert ids(hits(DATED, said("a", "b"), gone=[0])) == ["id1"]


# --- relative dates ---------------------------------------------------------------------------------------------------


def test_the_day_stands_behind_a_relative_date_if_that_is_set_and_the_message_has_a_time() -> None:
    timed, timeless, beyond = (Message("user", "I ran yesterday.", time) for time in (MAY_8, None, 10**18))
    assert contents(hits(RESOLVING, [timed])) == ["[2023-05-08] user: I ran yesterday (2023-05-07)."]
    assert contents(hits(RESOLVING, [timeless, beyond])) == ["user: I ran yesterday."] * 2
    assert contents(hits(DATED, [timed])) == ["[2023-05-08] user: I ran yesterday."]


def test_dates_are_resolved_in_the_texts_around_an_image_and_in_a_neighbour() -> None:
    image = Image("00", "image/png", b"png")
    message = Message("user", "yesterday\nmore", MAY_8, ("yesterday", image, "more"))
    assert contents(hits(RESOLVING, [message])) == [("[2023-05-08] user: yesterday (2023-05-07)", image, "more")]
    both = Presenter("dated", resolve_dates=True, fold_neighbours=True)
    (hit,) = hits(both, [Message("user", "yesterday", MAY_8), Message("user", "b")], ranking=[1])
    assert hit.content == "[2023-05-08] user: yesterday (2023-05-07)\nuser: b"


# --- the length budget ------------------------------------------------------------------------------------------------


def test_the_budget_counts_content_and_a_hit_that_does_not_fit_makes_room_for_shorter_ones() -> None:
    shown = hits(RAW, said("a" * 40, "b" * 70, "c" * 59, "d"), budget=100)
    assert ids(shown) == ["id0", "id2"]  # 40, not 40 + 1 + 70, 40 + 1 + 59 = 100, not one more


def test_the_first_hit_is_given_whatever_its_length() -> None:
    assert contents(hits(RAW, said("a" * 500, "b"), budget=100)) == ["a" * 500]


def test_what_was_left_out_for_its_length_makes_room_within_the_limit() -> None:
    assert ids(hits(RAW, said("a" * 40, "b" * 70, "c" * 10, "d" * 10), budget=100, limit=2)) == ["id0", "id2"]


def test_no_budget_gives_all() -> None:
    assert len(hits(DATED, said(*["a" * 100_000] * 20))) == 20


@given(
    lengths=st.lists(st.integers(1, 300), min_size=1, max_size=12),
    shuffled=st.randoms(),
    budget=st.integers(1, 900),
    limit=st.integers(1, 12),
)
def test_all_contents_joined_stay_within_the_budget_and_no_message_is_shown_twice(
    lengths: list[int], shuffled: Random, budget: int, limit: int
) -> None:
    texts = [f"<{at}>{'x' * length}" for at, length in enumerate(lengths)]
    ranking = list(range(len(texts)))
    shuffled.shuffle(ranking)
    alone, folded = (hits(presenter, said(*texts), ranking, budget, limit) for presenter in (DATED, FOLDING))
    assert [(hit.id, hit.score) for hit in folded] == [(hit.id, hit.score) for hit in alone]
    assert len(folded) <= limit
    shown = "\n".join(str(hit.content) for hit in folded)
    assert len(folded) == 1 or len(shown) <= budget
    assert set(Counter(shown.split("\n")).values()) == {1}


# --- neighbours -------------------------------------------------------------------------------------------------------


def test_neighbours_are_shown_with_a_hit_before_and_behind_it_in_their_order() -> None:
    (hit,) = hits(FOLDING, said("a", "b", "c", "d"), ranking=[1])
    assert (hit.id, hit.content) == ("id1", "user: a\nuser: b\nuser: c")


def test_a_hit_is_no_neighbour_and_one_between_two_hits_is_shown_once_with_the_better() -> None:
    shown = hits(FOLDING, said("a", "b", "c", "d"), ranking=[3, 1, 0])
    assert contents(shown) == ["user: c\nuser: d", "user: b", "user: a"]


def test_neighbours_take_the_room_that_hits_left_the_best_hits_first() -> None:
    texts = ["a" * 10, "b" * 10, "x", "c" * 10, "d" * 10]
    room = sum(len(f"user: {text}") + JOINT for text in ("b" * 10, "d" * 10, "c" * 10)) - JOINT  # two hits and one neighbour
    exact, short = (hits(FOLDING, said(*texts), ranking=[4, 1], budget=budget) for budget in (room, room - 1))
    assert contents(exact) == [f"user: {texts[3]}\nuser: {texts[4]}", f"user: {texts[1]}"]
    assert contents(short) == [f"user: {texts[4]}", f"user: {texts[1]}\nuser: x"]


def test_a_long_neighbour_an_image_and_one_that_is_gone_are_not_shown() -> None:
    image = Message("user", "look", None, ("look", Image("00", "image/png", b"png")))
    assert contents(hits(FOLDING, [*said("a" * (NEIGHBOUR + 1), "b"), image], ranking=[1])) == ["user: b"]
    assert contents(hits(FOLDING, said("a" * NEIGHBOUR, "b"), ranking=[1])) == [f"user: {'a' * NEIGHBOUR}\nuser: b"]
    assert contents(hits(FOLDING, said("a", "b"), ranking=[1], gone=[0])) == ["user: b"]


def test_nothing_is_folded_into_a_hit_with_an_image_nor_in_raw_style() -> None:
    image = Image("00", "image/png", b"png")
    assert contents(hits(FOLDING, [*said("a"), Message("user", "", None, (image,))], ranking=[1])) == [("user:", image)]
    assert contents(hits(replace(FOLDING, style="raw"), said("a", "b"), ranking=[1])) == ["b"]


# --- texts that arrived cut -------------------------------------------------------------------------------------------

WHOLE = "alpha " * 1_300 + "the zanzibar expedition " + "omega " * 1_300
CUT = WHOLE.index("zanzibar") + len("zanz")
PIECES = [f"Caroline: {WHOLE[:CUT]}", f"Caroline: {WHOLE[CUT:].strip()}"]


def test_a_piece_is_shown_with_the_ends_of_its_neighbours_and_the_parted_word_whole() -> None:
    first, second = (str(content) for content in contents(hits(DATED, said(*PIECES), cut=[1])))
    assert first.startswith(PIECES[0])
    assert "the zanzibar expedition omega" in first
    assert len(PIECES[0]) < len(first) <= len(PIECES[0]) + OVERLAP
    assert second.startswith("Caroline: alpha ")
    assert "alpha the zanzibar expedition omega" in second
    assert len(PIECES[1]) < len(second) <= len(PIECES[1]) + OVERLAP


def test_what_is_joined_begins_and_ends_at_a_word() -> None:
    first, second = (str(content) for content in contents(hits(DATED, said(*PIECES), cut=[1])))
    assert set(first.split()) | set(second.split()) == {"Caroline:", *WHOLE.split()}


def test_the_middle_piece_gets_both_ends() -> None:
    a, b, c = "a" * CUT_AT, "b" * CUT_AT, "c" * CUT_AT
    (hit,) = hits(DATED, said(a, b, c), ranking=[1], cut=[1, 2])
    assert hit.content == f"user: {'a' * OVERLAP}{b}{'c' * OVERLAP}"


def test_raw_style_and_a_piece_without_its_neighbour_show_what_was_received() -> None:
    assert contents(hits(RAW, said(*PIECES), cut=[1])) == PIECES
    assert contents(hits(DATED, said(*PIECES), ranking=[1], cut=[1], gone=[0])) == [PIECES[1]]


def test_the_rest_of_a_cut_text_is_not_folded_too() -> None:
    rest = "the short rest"
    (hit,) = hits(FOLDING, said("a" * CUT_AT, rest, "b"), ranking=[0], cut=[1])
    assert hit.content == f"user: {'a' * CUT_AT}{rest}"


# --- images -----------------------------------------------------------------------------------------------------------


def test_images_keep_their_place_and_the_label_stands_in_front() -> None:
    image = Image("00", "image/png", b"png")
    around, alone = Message("user", "look\nhere", MAY_8, ("look", image, "here")), Message("user", "", MAY_8, (image,))
    assert contents(hits(DATED, [around, alone])) == [
        ("[2023-05-08] user: look", image, "here"),
        ("[2023-05-08] user:", image),
    ]
    assert contents(hits(RAW, [alone])) == [(image,)]


def test_images_of_all_hits_share_one_budget_also_where_messages_are_read_in_several_slices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("memserver.presenter.MAX_IMAGE_BYTES", 100)
    pictures = [Message("user", "", None, (Image(f"{number:064d}", "image/png", bytes(45)),)) for number in range(3)]
    long = Message("user", "x" * 50)
    ranked = [pictures[0], long, pictures[1], pictures[2], *said("short")]  # read three at a time: the long one does not fit
    shown = hits(DATED, ranked, budget=40, limit=3)
    assert ids(shown) == ["id0", "id2", "id4"]  # 45 + 45 bytes; the third picture would be 135
