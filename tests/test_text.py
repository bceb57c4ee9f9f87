"""Index terms, labels and dates."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memserver.text import ANALYZERS, MAX_ROLE, MAX_TERM, PIECE, ascii_stems, day, index_prefix, label_of, stems


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Running runners RAN", ["run", "runner", "ran"]),
        ("Caroline's dog doesn’t bark", ["carolin", "dog", "doesnt", "bark"]),
        ("the cat and the hat", ["cat", "hat"]),
        ("Café naïve", ["cafe", "naiv"]),
        ("我喜欢猫", ["我喜", "喜欢", "欢猫", "我", "喜", "欢", "猫"]),
        ("猫", ["猫"]),
        ("买iPhone吗", ["买", "iphon", "phone"]),
        ("猫的名字是什么", ["猫", "名字", "字是", "名", "字", "是"]),
        ("ひらがな", ["ひら", "らが", "がな"]),
        ("get_user_name", ["get_user_name", "get", "user", "name"]),
        ("getUserName", ["getusernam", "get", "user", "name"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("src/app/main.py", ["src/app/main.py", "src", "app", "main", "py"]),
        ("version 3.11.7", ["version", "3.11.7", "3", "11", "7"]),
        ("error E0382", ["error", "e0382", "0382"]),
        ("ORA-00942", ["ora-00942", "ora", "00942"]),
        ("std::vector", ["std::vector", "std", "vector"]),
        ("20th", ["20th", "20", "th"]),
        ("ｆｕｌｌ　ｗｉｄｔｈ", ["full", "width"]),
        ("__init__", ["init"]),
        ("हिन्दी", ["हि", "िन", "न्", "्द", "दी"]),
        ("", []),
        ("... !?", []),
    ],
)
def test_terms_of(text: str, terms: list[str]) -> None:
    assert stems(text) == terms


def test_the_same_identifier_is_found_by_each_of_its_parts_and_as_a_whole() -> None:
    indexed = set(stems("File src/net/httpClient.ts, line 7"))
    for query in ("httpClient", "client", "src/net/httpClient.ts", "ts"):
        assert indexed & set(stems(query)), query


def test_the_ascii_analyzer_knows_no_other_alphabet_no_stop_words_and_no_single_characters() -> None:
    assert ascii_stems("The Café's e-mail, src/app.py: 7 running 猫 it") == ["the", "caf", "e-mail", "src/app.pi", "run", "it"]


@pytest.mark.parametrize("name", ANALYZERS)
@given(text=st.text())
def test_every_analyzer_gives_lower_case_terms_without_blanks(name: str, text: str) -> None:
    for term in ANALYZERS[name](text):
        assert term
        assert not any(character.isspace() for character in term)


@given(st.text())
def test_terms_are_short_lower_case_and_free_of_blanks(text: str) -> None:
    for term in stems(text):
        assert 0 < len(term) <= 2 * MAX_TERM
        assert not any(character.isspace() for character in term)


def test_a_word_at_the_edge_of_two_pieces_stays_whole() -> None:
    text = "word " * (PIECE // 5) + "unbroken tail"
    for lead in range(12):
        assert stems("x" * lead + " " + text)[-2:] == ["unbroken", "tail"]


@pytest.mark.parametrize("run", ["a", "a.", "_", "'", "ａ", "aB1", "a_'", "猫", "\u0301\u0316", "ab "])
def test_hostile_runs_are_cut_into_bounded_terms(run: str) -> None:
    assert all(len(term) <= MAX_TERM for term in stems(run * 300_000))


@pytest.mark.parametrize(
    "text", ["user: hi", "Caroline: hi", "source: x", "Dr. Anna Smith: hi", "医生：你好", "  user: hi", "李雷: 你好", "Zoë: hi"]
)
def test_a_label_is_seen(text: str) -> None:
    assert label_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "hi",
        "http://x.org",
        "12:30 is fine",
        "one two three four: x",
        "a:b",
        ": x",
        "",
        "so I said: hi",
        "Note that: this",
        "https: x",
    ],
)
def test_no_label_is_seen(text: str) -> None:
    assert not label_of(text)


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        (0, "1970-01-01"),
        (1_683_504_000_000, "2023-05-08"),
        (-1, "1969-12-31"),
        (253_402_300_799_999, "9999-12-31"),
        (253_402_300_800_000, None),
        (10**30, None),
        (-(10**30), None),
        (None, None),
    ],
)
def test_the_day_of_a_timestamp(timestamp: int | None, expected: str | None) -> None:
    found = day(timestamp)
    assert (found.isoformat() if found else None) == expected


def test_the_indexed_prefix_spells_the_date_and_names_the_speaker_once() -> None:
    assert index_prefix("user", 1_683_504_000_000, "hi") == "[Monday, 8 May 2023] user: "
    assert index_prefix("user", 1_683_504_000_000, "Caroline: hi") == "[Monday, 8 May 2023] "
    assert index_prefix("user", None, "hi") == "user: "
    assert index_prefix("user", None, "Caroline: hi") == ""
    assert index_prefix("r" * 5_000, None, "hi") == "r" * MAX_ROLE + ": "
