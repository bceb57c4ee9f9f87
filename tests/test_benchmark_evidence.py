from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark.evidence import JOINT, containment, cut_tokens, exact_match, token_f1, within_characters, within_tokens, words
from memserver import presenter

contents = st.lists(st.text())
budgets = st.integers(0, 60)


# --- budgets ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "expected"), [(4, 0), (5, 1), (5 + 1 + 2, 1), (5 + 1 + 3, 2), (5 + 1 + 3 + 1 + 4, 3), (99, 3)]
)
def test_a_content_counts_once_it_lies_wholly_within_the_characters_newlines_included(budget: int, expected: int) -> None:
    assert within_characters(["apple", "fig", "pear"], budget) == expected


def test_the_product_counts_between_two_contents_what_the_bench_counts() -> None:
    assert len(JOINT) == presenter.JOINT


def test_nothing_behind_a_content_that_is_too_long_is_seen() -> None:
    assert within_characters(["apple", "a very long one", "fig"], 10) == 1


@pytest.mark.parametrize(("budget", "expected"), [(1, 0), (2, 1), (3, 1), (4, 2)])
def test_a_token_is_four_bytes_of_utf_8(budget: int, expected: int) -> None:
    assert (len(b"12345678"), len("\n咖啡".encode())) == (2 * 4, 1 + 2 * 3)
    assert within_tokens(["12345678", "咖啡"], budget) == expected


def test_a_cut_keeps_whole_characters_only() -> None:
    assert cut_tokens(["abc", "咖啡"], 2) == "abc\n咖"  # 3 + 1 + 3 bytes; 8 would split the next character
    assert cut_tokens(["abc", "咖啡"], 100) == "abc\n咖啡"


@given(contents, budgets)
def test_what_is_seen_fits_and_one_more_would_not(texts: list[str], budget: int) -> None:
    seen = within_characters(texts, budget)
    assert len("\n".join(texts[:seen])) <= budget
    assert seen == len(texts) or len("\n".join(texts[: seen + 1])) > budget


@given(contents, budgets)
def test_contents_within_the_tokens_stand_whole_in_the_cut_text(texts: list[str], budget: int) -> None:
    assert cut_tokens(texts, budget).startswith("\n".join(texts[: within_tokens(texts, budget)]))


# --- answers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Sister's café!", ["sisters", "café"]),
        ("self-care", ["self", "care"]),
        ("[2023-05-08] Caroline: an LGBTQ group", ["2023", "05", "08", "caroline", "lgbtq", "group"]),
        ("... the", []),
    ],
)
def test_words_are_lower_case_without_punctuation_and_articles(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Adoption agencies", 1),
        ("the adoption agencies.", 1),
        ("agencies adoption", 0),
        ("adopt", 0),  # whole words only
    ],
)
def test_containment_wants_the_whole_answer_in_a_row(answer: str, expected: float) -> None:
    assert containment(answer, "Caroline: I looked at the adoption\nagencies, today") == expected


@pytest.mark.parametrize(
    "answer", ["", "The", "yes", "No.", "3", "Three", "$2,000", "2022", "one two three four five and a half"]
)
def test_containment_is_undefined_where_it_would_say_nothing(answer: str) -> None:
    assert containment(answer, "yes, no: 3 three $2,000 2022 one two three four five and a half") is None


@pytest.mark.parametrize(
    ("answer", "gold", "expected"),
    [
        ("a red cello", "red cello", 1),
        ("a big red cello", "red cello", 2 * (2 / 3) * (2 / 2) / (2 / 3 + 2 / 2)),
        ("red red", "red cello red red", 2 * (2 / 2) * (2 / 4) / (2 / 2 + 2 / 4)),
        ("blue", "red cello", 0),
        ("", "red cello", 0),
        ("", "", 0),
    ],
)
def test_token_f1_is_the_harmonic_mean_of_precision_and_recall(answer: str, gold: str, expected: float) -> None:
    assert token_f1(answer, gold) == pytest.approx(expected)


@pytest.mark.parametrize(("answer", "gold", "expected"), [("The cello!", "cello", 1), ("cello", "a red cello", 0)])
def test_exact_match_ignores_case_punctuation_and_articles(answer: str, gold: str, expected: float) -> None:
    assert exact_match(answer, gold) == expected


@given(st.text(), st.text())
def test_an_exact_match_with_words_has_the_highest_f1_and_is_contained(answer: str, gold: str) -> None:
    assert 0 <= token_f1(answer, gold) == token_f1(gold, answer) <= 1
    if words(gold):
        assert (token_f1(gold, gold), exact_match(gold, gold)) == (1, 1)
        assert containment(gold, f"{answer} {gold} {answer}") in (1, None)
