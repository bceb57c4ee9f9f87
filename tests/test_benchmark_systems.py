from __future__ import annotations

import json
from math import log2
from pathlib import Path
from typing import Any

import pytest
from result_helpers import agentmemory, question, result, saved

from benchmark.errors import BenchError
from benchmark.systems import align, ours, read_system

TEN = [f"s{place}" for place in range(1, 11)]


def test_a_result_of_ours_is_named_by_profile_and_commit(tmp_path: Path) -> None:
    system = read_system(saved(tmp_path / "r.json", result([question("1", ["gold"])], profile="bm25")))
    assert (system.name, system.benchmark, list(system.rows)) == ("bm25 (0123456)", "longmemeval", ["1"])
    assert system.result is not None


@pytest.mark.parametrize(
    ("manifest", "name"),
    [
        ({"dirty": True}, "default (0123456-dirty)"),
        ({"commit": None, "dirty": None, "profile": "server"}, "server (http)"),
        ({"seed": 7}, "default-seed7 (0123456)"),
    ],
)
def test_what_is_unusual_of_a_result_stands_in_its_name(manifest: dict[str, Any], name: str) -> None:
    assert ours(result([question("1", ["gold"])], **manifest)).name == name


def test_our_results_on_different_data_files_are_refused(tmp_path: Path) -> None:
    questions = [question("1", ["gold"])]
    one, other = (ours(result(questions, data={"file": "d.json", "sha256": letter * 64})) for letter in "ab")
    with pytest.raises(BenchError, match=r"different data files .*: d\.json \(aaaaaaaaaaaa\), d\.json \(bbbbbbbbbbbb\)"):
        align([one, other])
    peer = read_system(agentmemory(tmp_path / "peer.json", {"1": ["gold"]}))
    assert len(align([one, peer, one])) == 3


def test_agentmemorys_rows_are_read(tmp_path: Path) -> None:
    system = read_system(agentmemory(tmp_path / "peer.json", {"1": ["x", "gold"], "2_abs": ["gold"]}))
    assert system.name == "agentmemory bm25"
    assert {id: (row.ranked, row.scored) for id, row in system.rows.items()} == {
        "1": (("x", "gold"), True),
        "2_abs": (("gold",), False),
    }


def test_memeshs_rows_are_read(tmp_path: Path) -> None:
    row = {"question_id": "1", "question_type": "user", "ranked_session_ids": ["x", "gold"], "answer_session_ids": ["gold"]}
    (tmp_path / "peer.json").write_text(json.dumps({"run_info": {}, "results": [row]}))
    system = read_system(tmp_path / "peer.json")
    assert (system.name, system.rows["1"].ranked, system.rows["1"].gold) == ("memesh", ("x", "gold"), frozenset({"gold"}))


def test_memweaves_lines_are_read_without_its_summary(tmp_path: Path) -> None:
    row = {"question_id": "1", "question_type": "user", "ranked_session_ids": [*TEN, "gold"], "answer_session_ids": ["gold"]}
    (tmp_path / "peer.jsonl").write_text(f"{json.dumps(row)}\n{json.dumps({'__summary__': True, 'n': 1})}\n")
    system = read_system(tmp_path / "peer.jsonl")
    assert (system.name, system.rows["1"].ranked) == ("memweave", tuple(TEN))


def test_what_a_peer_found_beyond_ten_counts_as_not_found(tmp_path: Path) -> None:
    rows = read_system(agentmemory(tmp_path / "peer.json", {"1": [*TEN, "gold"], "2": [*TEN[:9], "gold"]})).rows
    assert (rows["1"].rank, rows["1"].metrics["mrr@10"]) == (None, 0)
    assert (rows["2"].rank, rows["2"].metrics["mrr@10"]) == (10, 1 / 10)


def test_a_peers_metrics_are_those_of_the_bench(tmp_path: Path) -> None:
    row = read_system(agentmemory(tmp_path / "peer.json", {"1": ["x", "a", "y", "b"]}, gold=["a", "b"])).rows["1"]
    assert row.metrics["recall_any@1"] == 0
    assert row.metrics["recall_any@3"] == row.metrics["recall_all@5"] == 1
    assert row.metrics["recall_all@3"] == 0
    assert row.metrics["ndcg@10"] == pytest.approx((1 / log2(3) + 1 / log2(5)) / (1 / log2(2) + 1 / log2(3)))
    assert row.metrics["mrr@10"] == 1 / 2


def test_our_mrr_over_all_sessions_stands_beside_the_one_over_ten() -> None:
    row = ours(result([question("1", [*TEN, "gold"])])).rows["1"]
    assert (row.metrics["mrr"], row.metrics["mrr@10"], row.rank) == (1 / 11, 0, 11)


def test_a_locomo_question_ranks_by_its_turns() -> None:
    one = question("1", ["gold"])
    one["metrics"] = {"mrr": 1 / 7}
    row = ours(result([one], benchmark="locomo")).rows["1"]
    assert (row.rank, row.metrics) == (7, {"mrr": 1 / 7})


def test_systems_are_aligned_on_the_questions_of_all_and_graded_by_our_gold(tmp_path: Path) -> None:
    peer = read_system(agentmemory(tmp_path / "peer.json", {"0": ["gold"], "1": ["a", "gold"], "2": ["a"]}))
    mine = ours(result([question("2", ["a"], gold=["a"]), question("1", ["gold"], gold=["a"]), question("3", ["gold"])]))
    theirs, own = align([peer, mine])
    assert list(theirs.rows) == list(own.rows) == ["2", "1"]
    assert [row.rank for row in theirs.rows.values()] == [1, 1]
    assert [row.rank for row in own.rows.values()] == [1, None]


def test_systems_without_a_common_question_are_refused() -> None:
    with pytest.raises(BenchError, match="no question is common"):
        align([ours(result([question("1", [])])), ours(result([question("2", [])]))])


def test_systems_of_different_benchmarks_are_refused() -> None:
    with pytest.raises(BenchError, match="different benchmarks"):
        align([ours(result([question("1", [])])), ours(result([question("1", [])], benchmark="locomo"))])


@pytest.mark.parametrize("value", [[], {}, 3, [1], {"per_question": 3}, {"results": "x"}, [{"__summary__": True}]])
def test_another_file_is_refused(tmp_path: Path, value: object) -> None:
    (tmp_path / "other.json").write_text(json.dumps(value))
    with pytest.raises(BenchError, match=r"other\.json: neither a result file"):
        read_system(tmp_path / "other.json")


@pytest.mark.parametrize("row", [{}, 3, {"question_id": "1", "question_type": "user", "gold_session_ids": ["a"]}])
def test_rows_that_lack_something_are_refused(tmp_path: Path, row: object) -> None:
    (tmp_path / "peer.json").write_text(json.dumps({"per_question": [row]}))
    with pytest.raises(BenchError, match="a row lacks"):
        read_system(tmp_path / "peer.json")


@pytest.mark.parametrize(("name", "text"), [("peer.jsonl", "{"), ("peer.json", "{"), ("missing.jsonl", None)])
def test_a_file_that_cannot_be_read_is_said_to_be_one(tmp_path: Path, name: str, text: str | None) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(BenchError, match=name):
        read_system(tmp_path / name)
