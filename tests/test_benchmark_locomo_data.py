from __future__ import annotations

import gzip
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark.errors import BenchError
from benchmark.locomo_data import load_conversations, resolve

TINY = Path(__file__).parent / "locomo_tiny.json"
FIRST, SECOND = load_conversations(TINY)
KNOWN = {(1, 1): "D1:1", (1, 2): "D1:2", (11, 26): "D11:26"}


def test_sessions_stand_in_order_of_number_and_dates_without_one_are_passed_over() -> None:
    assert [session.id for session in FIRST.sessions] == ["session_1", "session_2", "session_10"]


@pytest.mark.parametrize(("session", "moment"), [(0, (2023, 5, 8, 13, 56)), (1, (2023, 6, 2, 10, 30)), (2, (2023, 8, 1, 0, 5))])
def test_timestamps_are_the_sessions_dates_in_utc_milliseconds(session: int, moment: tuple[int, int, int, int, int]) -> None:
    assert FIRST.sessions[session].timestamp == datetime(*moment, tzinfo=UTC).timestamp() * 1000


def test_the_first_speaker_is_the_user_and_every_text_bears_its_speakers_name() -> None:
    turns = [(turn.id, turn.role, turn.content) for turn in FIRST.sessions[0].turns]
    assert turns == [
        ("D1:1", "user", "Ines: I bought a cello yesterday."),
        ("D1:2", "assistant", "Tomas: Lovely! Where will you practise? [shares a photo of an orchestra]"),
        ("D1:3", "user", "Ines: In the garage, the neighbours are patient."),
    ]


def test_categories_bear_the_papers_names_and_only_adversarial_questions_are_not_scored() -> None:
    assert [(question.type, question.scored) for question in FIRST.questions] == [
        ("single-hop", True),
        ("multi-hop", True),
        ("temporal", True),
        ("open-domain", True),
        ("adversarial", False),
    ]


def test_questions_without_evidence_are_not_asked() -> None:
    assert [question.id for question in FIRST.asked] == ["tiny-1/0", "tiny-1/1", "tiny-1/2", "tiny-1/4"]


def test_what_evidence_can_be_resolved_is_gold_and_the_rest_is_counted() -> None:
    temporal = FIRST.questions[2]
    assert temporal.gold == {"D10:1", "D10:2"}
    assert temporal.unresolved == len(["D7:1", "D"])


def test_answers_are_text_and_an_adversarial_question_has_none() -> None:
    assert [question.answer for question in FIRST.questions[1:]] == ["garage, kitchen", "2023", "SECRET-ANSWER", ""]


@pytest.mark.parametrize(
    ("evidence", "gold", "unresolved"),
    [
        (["D1:1", "D1:2"], {"D1:1", "D1:2"}, 0),
        (["D1:1 D1:2"], {"D1:1", "D1:2"}, 0),
        (["D1:1", "D1:1"], {"D1:1"}, 0),
        (["D:11:26"], {"D11:26"}, 0),
        (["D01:02"], {"D1:2"}, 0),
        (["D1:1; D9:9"], {"D1:1"}, 1),
        (["D", ""], set(), 2),
        ([], set(), 0),
    ],
)
def test_evidence_strings_are_read_in_all_their_forms(evidence: list[str], gold: set[str], unresolved: int) -> None:
    assert resolve(evidence, KNOWN) == (frozenset(gold), unresolved)


@given(st.sets(st.sampled_from(sorted(KNOWN.values()))), st.sampled_from(["; ", " ", ", "]))
def test_one_string_of_several_ids_says_the_same_as_several_strings(ids: set[str], joint: str) -> None:
    assert resolve([joint.join(sorted(ids))], KNOWN)[0] == resolve(sorted(ids), KNOWN)[0] == ids


def test_a_gzipped_file_and_a_limit_are_read_alike(tmp_path: Path) -> None:
    packed = tmp_path / "locomo.json.gz"
    packed.write_bytes(gzip.compress(TINY.read_bytes()))
    assert load_conversations(packed) == [FIRST, SECOND]
    assert load_conversations(packed, 1) == [FIRST]


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text("{}")
    with pytest.raises(BenchError, match="not a LoCoMo file"):
        load_conversations(other)


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ('"session_1_date_time"', '"date"', "KeyError: 'session_1_date_time'"),
        ("8 May, 2023", "2023-05-08", "does not match format"),
        ('"speaker": "Noor"', '"speaker": "Nobody"', "KeyError: 'Nobody'"),
        ('"dia_id": "D1:2"', '"dia_id": "D1:1"', "without a dia_id of their own"),
        ('"category": 3', '"category": 6', "KeyError: 6"),
    ],
)
def test_a_damaged_file_is_refused_with_its_reason(tmp_path: Path, before: str, after: str, reason: str) -> None:
    text = TINY.read_text()
    assert before in text
    damaged = tmp_path / "damaged.json"
    damaged.write_text(text.replace(before, after))
    with pytest.raises(BenchError, match=f"not in LoCoMo's format .*{reason}"):
        load_conversations(damaged)


def test_printing_shows_no_text_of_the_data_set() -> None:
    assert "cello" not in repr(FIRST.sessions[0].turns[0]) + repr(FIRST.questions[0])
