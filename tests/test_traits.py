"""What is seen of messages and questions by patterns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memserver.traits import (
    ASKING_LENGTH,
    LONG_QUERY,
    OVERLAP,
    asking,
    asks_for_advice,
    body_of,
    goes_on,
    head,
    question_of,
    speaker,
    tail,
    traits,
)
from memserver.types import Image, Message, Traits

INSTRUCTIONS = "Read the memories with care. Answer in one short sentence. Never guess. " * 12  # 852 characters


def test_the_instructions_of_these_tests_make_a_long_query() -> None:
    assert len(INSTRUCTIONS) > LONG_QUERY


def test_traits_are_of_the_text_and_of_its_place() -> None:
    message = Message("user", "Caroline: Why?")
    assert traits(message, 5, "id") == Traits(14, ("carolin",), asking=1.0, placed=5, continues="id")


# --- speakers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "stems"),
    [
        ("Caroline: hi", ("carolin",)),
        ("Mary Ann Smith: hi", ("mari", "ann", "smith")),
        ("医生：您好", ("医生",)),
        ("J. Smith: hi", ("smith",)),
        ("user: hi", ()),
        ("Assistant: hi", ()),
        ("document: hi", ()),
        ("用户：您好", ()),
        ("no label here", ()),
        ("", ()),
    ],
)
def test_the_speaker_is_the_name_in_the_label_unless_it_is_a_role(text: str, stems: tuple[str, ...]) -> None:
    assert speaker(text) == stems


# --- questions in messages --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("Where were you?", 1.0),
        ("Caroline: Where were you?", 1.0),
        ("你去哪里了？", 1.0),
        ("I was here.", 0.0),
        ("I ran. And you?", 9 / 15),  # " And you?" of all
        ("Look! [shares a photo of a dog, why?]", 0.0),
        ("", 0.0),
        ("...", 0.0),
    ],
)
def test_asking_is_the_share_of_the_text_in_questions(text: str, share: float) -> None:
    assert asking(text) == pytest.approx(share)


def test_a_long_text_says_more_than_it_asks() -> None:
    assert asking("a" * (ASKING_LENGTH - 1) + "?") == 1
    assert asking("a" * ASKING_LENGTH + "?") == 0


@given(st.text())
def test_asking_is_a_share_of_any_text(text: str) -> None:
    assert 0 <= asking(text) <= 1


# --- questions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "Can you recommend a hotel in Rome?",
        "could you please suggest a film",
        "Any tips for my garden?",
        "Do you have some good ideas for dinner?",
        "Should I bring a coat?",
        "What would you suggest?",
        "能推荐一家餐馆吗？",
        "我失眠了，怎么办",
    ],
)
def test_a_question_for_advice_is_known_by_its_words(text: str) -> None:
    assert asks_for_advice(text)


@pytest.mark.parametrize(
    "text", ["Where did I buy the coat?", "Who recommended the hotel?", "What is her advice column called?", "", "几点开会"]
)
def test_a_question_for_a_fact_is_none_for_advice(text: str) -> None:
    assert not asks_for_advice(text)


def test_a_short_query_is_its_own_question() -> None:
    text = "Think first. Where is it? " + "x" * (LONG_QUERY - 26)
    assert len(text) == LONG_QUERY
    assert question_of(text) == text


@pytest.mark.parametrize("marker", ["Question:", "question :", "**Question**:", "## Question:", "User question:", "问题："])
def test_a_marked_question_is_found_in_a_long_query(marker: str) -> None:
    assert question_of(f"{INSTRUCTIONS}\n{marker} Name her dog.\n\nThink step by step.") == "Name her dog."


def test_the_last_marked_question_counts() -> None:
    assert question_of(f"Question: Who?\nAnswer: Bob\n{INSTRUCTIONS}\nQuestion: Name her dog.") == "Name her dog."


def test_without_a_mark_it_is_the_last_sentence_with_a_question_mark_and_the_one_before() -> None:
    text = f"What is asked? {INSTRUCTIONS}She got a dog. What is it called? Answer briefly."
    assert question_of(text) == "She got a dog. What is it called?"


def test_a_mark_with_nothing_behind_it_marks_nothing() -> None:
    assert question_of(f"{INSTRUCTIONS}What is it called?\nQuestion:") == "Never guess. What is it called?"


def test_a_long_query_without_a_question_stays_whole() -> None:
    assert question_of(INSTRUCTIONS) == INSTRUCTIONS


@given(st.text(alphabet="ab ?.\n:", max_size=40).map(lambda text: INSTRUCTIONS + text + "Question: " + text), st.booleans())
def test_a_question_stands_in_its_query_and_is_not_blank(text: str, marked: bool) -> None:
    text = text if marked else text.replace("Question", "")
    found = question_of(text)
    assert found.strip()
    assert found in text
    assert found == text or len(found) <= LONG_QUERY


# --- texts that arrive cut ----------------------------------------------------------------------------------------------

LIMIT = 100
FULL = Message("user", "document: ".ljust(LIMIT, "x"))
REST = Message("user", "document: rest")


def test_a_text_goes_on_behind_a_piece_of_full_length() -> None:
    assert goes_on(FULL, REST, LIMIT)
    assert goes_on(Message("user", "x" * LIMIT), Message("user", "rest"), LIMIT)


@pytest.mark.parametrize(
    ("before", "message", "cut_chars"),
    [
        pytest.param(FULL, REST, LIMIT + 1, id="the piece before is shorter"),
        pytest.param(FULL, REST, 0, id="switched off"),
        pytest.param(FULL, Message("assistant", REST.text), LIMIT, id="another role"),
        pytest.param(FULL, Message("user", "source: rest"), LIMIT, id="another label"),
        pytest.param(FULL, Message("user", "rest"), LIMIT, id="no label"),
        pytest.param(FULL, Message("user", REST.text, None, (Image("00", "image/png", b"png"),)), LIMIT, id="an image"),
    ],
)
def test_another_text_begins_otherwise(before: Message, message: Message, cut_chars: int) -> None:
    assert not goes_on(before, message, cut_chars)


def test_the_tail_starts_at_a_word_and_has_no_label() -> None:
    assert tail("user: one two") == "one two"
    assert tail("user: " + "abcdef " * 100) == "abcdef " * 57  # 57 * 7 = 399


def test_the_head_ends_at_a_word_and_has_no_label() -> None:
    assert head("user: one two") == "one two"
    assert head("user: " + "abcdef " * 100) == ("abcdef " * 57).rstrip()


def test_a_text_without_blanks_is_cut_where_the_overlap_ends() -> None:
    text = "".join(map(chr, range(0x4E00, 0x4E00 + 3 * OVERLAP)))
    assert (head(text), tail(text)) == (text[:OVERLAP], text[-OVERLAP:])


@given(st.lists(st.text("ab", min_size=1, max_size=20), max_size=100), st.sampled_from(["", "user: ", "Caroline: "]))
def test_tail_and_head_are_ends_of_the_text_as_long_as_they_may_be_without_parting_a_word(words: list[str], label: str) -> None:
    body = " ".join(words)
    text = label + body
    assert body_of(text) == body
    before, after = tail(text), head(text)
    assert body.endswith(before)
    assert body.startswith(after)
    assert {*before.split(), *after.split()} <= set(words)
    assert all(min(len(body), OVERLAP - 21) <= len(end) <= OVERLAP for end in (before, after))
