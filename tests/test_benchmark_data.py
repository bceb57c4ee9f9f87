from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from benchmark.data import Turn, download, load_cases, statistics
from benchmark.errors import BenchError

TINY = Path(__file__).parent / "longmemeval_tiny.json"


def test_cases_are_read_in_the_order_of_the_file() -> None:
    cases = load_cases(TINY)
    assert [(case.index, case.id, case.abstention) for case in cases] == [
        (0, "q_sourdough", False),
        (1, "q_museums", False),
        (2, "q_piano_abs", True),
    ]
    assert [session.id for session in cases[0].sessions] == ["chat_1", "answer_bread", "chat_2"]
    assert cases[1].gold == {"answer_lisbon", "answer_porto"}


def test_a_session_has_its_date_in_milliseconds_utc_and_its_texts_unchanged() -> None:
    session = load_cases(TINY)[0].sessions[1]
    assert session.timestamp == datetime(2023, 5, 21, 10, 0, tzinfo=UTC).timestamp() * 1000
    assert session.turns[1] == Turn("assistant", " ")


def test_what_answers_the_question_is_read_for_the_bench_alone() -> None:
    case = load_cases(TINY)[1]
    assert case.evidence == {(0, 0), (2, 0)}  # session and turn, has_answer true
    assert case.answer == "SECRET-ANSWER three"
    assert "SECRET" not in repr(case)


def test_a_file_without_marks_and_answers_reads_too(tmp_path: Path) -> None:
    items = json.loads(TINY.read_text())
    del items[0]["answer"], items[0]["haystack_sessions"][1][0]["has_answer"]
    case = load_cases(_written(tmp_path, items))[0]
    assert (case.evidence, case.answer) == (frozenset(), "")


def test_the_corpus_is_counted() -> None:
    found = statistics(load_cases(TINY)[:1])
    texts = [turn["content"] for session in json.loads(TINY.read_text())[0]["haystack_sessions"] for turn in session]
    assert found == {"questions": 1, "sessions": 3, "messages": 2 + 3 + 2, "characters": len("".join(texts))}


def test_a_file_that_is_there_is_not_fetched() -> None:
    download(TINY)


def test_a_file_that_the_data_set_does_not_have_is_not_asked_for(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"no file of .* has that name; there are longmemeval_s_cleaned\.json"):
        download(tmp_path / "longmemeval.json")


def test_where_the_hub_cannot_be_reached_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: object, **__: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr("huggingface_hub.hf_hub_download", unreachable)
    with pytest.raises(BenchError, match=r"(?s)can't be fetched .*\(OSError\).*hf download .*copy the file to"):
        download(tmp_path / "longmemeval_s_cleaned.json")


def test_a_file_is_fetched_into_the_folder_where_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr("huggingface_hub.hf_hub_download", lambda *args, **options: asked.extend([args, options]))
    download(tmp_path / "longmemeval_oracle.json")
    names = ("xiaowu0162/longmemeval-cleaned", "longmemeval_oracle.json")
    assert asked == [names, {"repo_type": "dataset", "local_dir": tmp_path}]


def test_a_gzipped_file_reads_the_same(tmp_path: Path) -> None:
    packed = tmp_path / "tiny.json.gz"
    packed.write_bytes(gzip.compress(TINY.read_bytes()))
    assert load_cases(packed) == load_cases(TINY)


def test_a_limit_keeps_the_first_cases() -> None:
    assert load_cases(TINY, 2) == load_cases(TINY)[:2]


def test_a_missing_file_is_named() -> None:
    with pytest.raises(BenchError, match=r"nowhere\.json: can't be read .*path of the data set"):
        load_cases(Path("nowhere.json"))


@pytest.mark.parametrize("text", ["[{", "\ufeff", "nonsense"])
def test_a_file_that_is_no_json_is_refused(tmp_path: Path, text: str) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text(text)
    with pytest.raises(BenchError, match="not a complete JSON file"):
        load_cases(broken)


def test_a_gzip_file_that_breaks_off_is_refused(tmp_path: Path) -> None:
    broken = tmp_path / "broken.json.gz"
    broken.write_bytes(gzip.compress(TINY.read_bytes())[:-20])
    with pytest.raises(BenchError, match="not a complete JSON file"):
        load_cases(broken)


@pytest.mark.parametrize("value", [{}, [], "text"])
def test_json_that_is_no_list_of_cases_is_refused(tmp_path: Path, value: object) -> None:
    with pytest.raises(BenchError, match="a list of cases"):
        load_cases(_written(tmp_path, value))


@pytest.mark.parametrize(
    "change",
    [
        {"haystack_dates": ["2023/05/20 (Sat) 02:21"]},
        {"haystack_dates": ["May 20", "May 21", "May 22"]},
        {"haystack_sessions": [[{"role": "user"}], [], []]},
        {"answer_session_ids": None},
    ],
)
def test_a_case_in_another_format_is_named_by_its_place(tmp_path: Path, change: dict[str, Any]) -> None:
    items = json.loads(TINY.read_text())
    items[1] |= change
    if "haystack_sessions" in change:
        items[1] |= {"haystack_dates": items[0]["haystack_dates"], "haystack_session_ids": ["answer_lisbon", "answer_porto", "c"]}
    with pytest.raises(BenchError, match="case 1 is not in LongMemEval's format"):
        load_cases(_written(tmp_path, items))


@pytest.mark.parametrize("gold", [[], ["elsewhere"]])
def test_a_case_whose_gold_is_not_in_its_haystack_is_refused(tmp_path: Path, gold: list[str]) -> None:
    items = json.loads(TINY.read_text())
    items[2]["answer_session_ids"] = gold
    with pytest.raises(BenchError, match="case 2 has no gold session"):
        load_cases(_written(tmp_path, items))


def _written(folder: Path, value: object) -> Path:
    path = folder / "data.json"
    path.write_text(json.dumps(value))
    return path
