"""What of an Add is counted, embedded and kept in mind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from string import hexdigits

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memserver.config import Settings
from memserver.embedders.hashing import Hashing
from memserver.embedders.none import NoEmbedder
from memserver.preparing import Prepared, hit_id, prepared, text_hash, windows
from memserver.text import stems
from memserver.traits import OVERLAP
from memserver.types import AddRequest, Embedder, FloatArray, Message, StoredMessage, Traits

MAY_8 = 1_683_504_000_000  # 2023-05-08, a Monday
FULL = Settings().cut_chars


def prepare(
    *messages: str | Message, said: StoredMessage | None = None, embedder: Embedder | None = None, **settings: object
) -> list[Prepared]:
    request = AddRequest(
        "r", "ann", "s", tuple(Message("user", each) if isinstance(each, str) else each for each in messages), "d"
    )
    return list(prepared(request, said, embedder or Hashing(), Settings.model_validate(settings)))


def texts(messages: Sequence[Prepared]) -> list[list[str]]:
    return [message.texts for message in messages]


def stored(text: str, role: str = "user") -> StoredMessage:
    return StoredMessage(7, "earlier", "s", Message(role, text))


# --- ids ----------------------------------------------------------------------------------------------------------------


def test_a_hit_id_is_opaque_and_always_the_same() -> None:
    id_ = hit_id("ann", "r", 0)
    assert id_ == hit_id("ann", "r", 0)
    assert len(id_) == 24
    assert set(id_) <= set(hexdigits.lower())


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=3)


@given(st.lists(st.tuples(text, text, st.integers(0, 20)), unique=True, max_size=8))
def test_no_two_messages_share_an_id(keys: list[tuple[str, str, int]]) -> None:
    assert len({hit_id(*key) for key in keys}) == len(keys)


def test_ids_and_messages_come_in_order() -> None:
    found = prepare("one", "two")
    assert [(message.id, message.message.text) for message in found] == [
        (hit_id("ann", "r", 0), "one"),
        (hit_id("ann", "r", 1), "two"),
    ]


# --- what is indexed ----------------------------------------------------------------------------------------------------


def test_date_and_speaker_belong_to_what_is_counted_and_embedded() -> None:
    (found,) = prepare(Message("user", "Ran far, ran fast", MAY_8))
    assert found.texts == ["[Monday, 8 May 2023] user: Ran far, ran fast"]
    assert found.terms == {"monday": 1, "8": 1, "may": 1, "2023": 1, "user": 1, "ran": 2, "far": 1, "fast": 1}


def test_dates_are_left_out_if_so_set_but_place_the_add_all_the_same() -> None:
    (found,) = prepare(Message("user", "hi", MAY_8), index_dates=False)
    assert found.texts == ["user: hi"]
    assert found.traits.placed == MAY_8


def test_all_messages_of_an_add_are_placed_by_its_first_timestamp() -> None:
    found = prepare("a", Message("user", "b", MAY_8), Message("user", "c", MAY_8 - 1))
    assert [message.traits.placed for message in found] == [MAY_8] * 3
    assert prepare("a")[0].traits.placed is None


def test_a_long_text_is_embedded_in_windows_that_each_carry_the_speaker() -> None:
    (found,) = prepare("user: " + "word " * 1_000)
    assert len(found.texts) > 1
    assert found.texts == windows(Hashing(), "user: " + "word " * 1_000)
    (unlabelled,) = prepare("word " * 1_000)
    assert all(each.startswith("user: ") for each in unlabelled.texts)


def test_windows_of_blanks_are_left_out() -> None:
    assert windows(Hashing(), "a" + " " * 5_000 + "b")[0].startswith("a")
    assert all(window.strip() for window in windows(Hashing(), "a" + " " * 5_000 + "b"))
    assert windows(Hashing(), "  ") == []


def test_without_an_embedder_there_is_nothing_to_embed() -> None:
    assert texts(prepare("one", "two", embedder=NoEmbedder())) == [[], []]


# --- in context ---------------------------------------------------------------------------------------------------------


def test_a_short_turn_is_embedded_with_the_one_before_it_but_counted_alone() -> None:
    first, second = prepare("Which instrument?", "The cello.")
    assert first.texts == ["user: Which instrument?"]
    assert second.texts == ["Which instrument?\nuser: The cello."]
    assert second.terms == {"user": 1, "cello": 1}


@pytest.mark.parametrize(
    ("before", "after", "together"),
    [("a" * 30, "b" * 30, True), ("a" * 31, "b", False), ("a", "b" * 31, False), (" \n", "b", False)],
)
def test_both_must_be_short_and_more_than_blanks(before: str, after: str, together: bool) -> None:
    found = prepare(before, after, context_chars=30)[1].texts
    assert found == [f"{before}\nuser: {after}" if together else f"user: {after}"]


def test_context_can_be_switched_off() -> None:
    assert texts(prepare("one", "two", context_chars=0)) == [["user: one"], ["user: two"]]


def test_the_context_is_of_the_same_add_since_adds_may_arrive_in_another_order() -> None:
    assert texts(prepare("two", said=stored("one"))) == [["user: two"]]


def test_two_that_do_not_fit_one_window_are_embedded_apart() -> None:
    found = prepare("a" * 600, "b" * 600, context_chars=700)[1].texts  # a window of Hashing has 1,000 characters
    assert found == [f"user: {'b' * 600}"]


# --- texts that arrive cut ----------------------------------------------------------------------------------------------


def cut_text(label: str = "") -> tuple[str, str]:
    """A text of filler words cut within ``zanzibar``."""
    return f"{label}{'alpha ' * (FULL // 6)}the zanz", f"{label}ibar expedition left"


@pytest.mark.parametrize("label", ["", "Caroline: "])
@pytest.mark.parametrize("across", [False, True])
def test_the_rest_of_a_cut_text_is_read_with_the_end_of_the_piece_before(label: str, across: bool) -> None:
    before, rest = cut_text(label)
    found = prepare(rest, said=stored(before))[0] if across else prepare(before, rest)[1]
    joined = "the zanzibar expedition left"
    assert found.texts == [f"{label or 'user: '}{'alpha ' * ((OVERLAP - len('the zanz')) // 6)}{joined}"]
    assert found.terms["zanzibar"] == 1
    assert set(found.terms) == {*stems(label or "user"), "alpha", *stems(joined)}
    assert found.message.text == rest
    assert found.traits.continues == ("earlier" if across else hit_id("ann", "r", 0))


def test_pieces_go_on_through_several_messages() -> None:
    piece = "x" * FULL
    assert [message.traits.continues for message in prepare(piece, piece, "end", "another")] == [
        None,
        hit_id("ann", "r", 0),
        hit_id("ann", "r", 1),
        None,
    ]


def test_nothing_goes_on_behind_a_shorter_message_another_speaker_or_if_switched_off() -> None:
    before, rest = cut_text()
    assert prepare(rest, said=stored("the zanz"))[0].traits.continues is None
    assert prepare(rest, said=stored(before, "assistant"))[0].traits.continues is None
    assert prepare(rest, said=stored(before), cut_chars=0)[0].traits.continues is None
    assert "zanzibar" not in prepare(rest, said=stored(before), cut_chars=0)[0].terms


# --- entries ------------------------------------------------------------------------------------------------------------


def vectors(*of: str) -> Mapping[bytes, FloatArray]:
    return {text_hash(each): np.full(2, len(each), np.float32) for each in of}


def test_an_entry_has_the_counts_of_its_terms_and_a_chunk_for_each_text() -> None:
    message = Message("user", "a")
    made = Prepared("id", message, Traits(1), Counter("bbc"), ["one", "three"]).entry(vectors("three", "one"))
    assert (made.id, made.message, made.traits) == ("id", message, Traits(1))
    assert dict(zip(made.stems, made.counts.tolist(), strict=True)) == {"b": 2, "c": 1}
    assert [chunk.text_hash for chunk in made.chunks] == [text_hash("one"), text_hash("three")]
    assert [chunk.vector.tolist() for chunk in made.chunks] == [[3, 3], [5, 5]]


def test_counts_stop_where_sixteen_bits_do() -> None:
    counted = Counter({"b": 70_000})
    assert Prepared("id", Message("user", "a"), Traits(1), counted, []).entry({}).counts.tolist() == [65_535]
