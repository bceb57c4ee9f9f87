from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from result_helpers import agentmemory, question, result, saved
from typer.testing import CliRunner

from benchmark.report import app

QUESTIONS = [question("1", ["gold"]), question("2", ["x", "gold"], type="temporal"), question("3_abs", ["gold"])]


def report(*arguments: object) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of the command."""
    run = CliRunner().invoke(app, list(map(str, arguments)))
    return run.exit_code, run.stdout, run.stderr


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    made = result(QUESTIONS, settings={"note": "<script>&</script>"}, cache_hits=3, cache_misses=1)
    return saved(tmp_path / "ours.json", made)


@pytest.fixture
def locomo(tmp_path: Path) -> Path:
    one = question("1", ["gold"])
    one["metrics"] = {"any@5": 0.0, "any@10": 1.0, "recall@10": 1.0, "recall@100": 1.0, "mrr": 1 / 7}
    return saved(tmp_path / "locomo.json", result([one], benchmark="locomo"))


def test_the_table_goes_to_stdout(ours: Path) -> None:
    code, stdout, stderr = report(ours)
    assert (code, stderr) == (0, "")
    assert stdout.splitlines()[0] == "### LongMemEval: tiny.json (SHA-256 012345670123), 3 questions"
    assert stdout.splitlines()[4].startswith("| default (0123456) | 2 | 50.0 [")


def test_peers_stand_beside_ours(tmp_path: Path, ours: Path) -> None:
    _, stdout, _ = report(ours, agentmemory(tmp_path / "peer.json", {"1": ["gold"], "2": ["gold"]}))
    assert [line.split(" | ")[0] for line in stdout.splitlines()[4:6]] == ["| default (0123456)", "| agentmemory bm25"]


def test_each_benchmark_has_its_own_table(ours: Path, locomo: Path) -> None:
    _, stdout, _ = report(locomo, ours)
    assert [line for line in stdout.splitlines() if line.startswith("#")] == [
        "### LoCoMo: tiny.json (SHA-256 012345670123), 1 questions",
        "### LongMemEval: tiny.json (SHA-256 012345670123), 3 questions",
    ]


def test_the_table_goes_to_a_file_where_one_is_named(tmp_path: Path, ours: Path) -> None:
    assert report(ours, "--markdown", tmp_path / "t.md") == (0, "", "")
    assert (tmp_path / "t.md").read_text() == report(ours)[1].removesuffix("\n")


def test_the_page_is_well_formed_and_needs_no_other_file(tmp_path: Path, ours: Path, locomo: Path) -> None:
    peer = agentmemory(tmp_path / "peer.json", {"1": ["gold"], "2": ["x"]})
    code, _, stderr = report(ours, peer, locomo, "--html", tmp_path / "page.html")
    assert (code, stderr) == (0, "")
    text = (tmp_path / "page.html").read_text()
    page = ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>"))
    assert {found.tag for found in page.iter()}.isdisjoint({"script", "link", "img", "iframe", "use", "image"})
    assert {name for found in page.iter() for name in found.attrib}.isdisjoint({"src", "href", "srcset"})
    assert re.findall(r"url\(|@import|https?:", text) == []


def test_the_page_shows_scores_charts_costs_and_the_manifest(tmp_path: Path, ours: Path) -> None:
    report(ours, "--html", tmp_path / "page.html")
    page = ElementTree.fromstring((tmp_path / "page.html").read_text().removeprefix("<!DOCTYPE html>"))
    titles = [found.attrib["aria-label"] for found in page.iter("svg")]
    assert titles == [
        "A gold session among the first k",
        "All gold sessions among the first k",
        "Headline figures",
        "mrr by type of question",
        "all@5 by type of question",
        "Add, time",  # no Search was timed
    ]
    cells = ["".join(cell.itertext()) for cell in page.iter("td")]
    assert "3" in cells  # MiB of the index
    assert "50.0" in cells[2]
    (manifest,) = page.iter("pre")
    assert '"note": "<script>&</script>"' in (manifest.text or "")


def test_peers_alone_have_no_data_file_to_name(tmp_path: Path) -> None:
    assert report(agentmemory(tmp_path / "peer.json", {"1": ["gold"]}))[1].startswith("### LongMemEval: 1 questions\n")


def test_times_with_vectors_from_the_cache_say_so(tmp_path: Path, ours: Path) -> None:
    report(ours, "--html", tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "own machine; default (0123456): vectors from the cache (75.0% of the texts)" in text
    assert "estimated: bytes / 4" in text


def test_a_type_of_few_questions_has_no_bar_but_its_number(tmp_path: Path) -> None:
    questions = [question(str(place), ["gold"], type="many" if place else "one") for place in range(6)]
    report(saved(tmp_path / "r.json", result(questions)), "--html", tmp_path / "page.html")
    page = ElementTree.fromstring((tmp_path / "page.html").read_text().removeprefix("<!DOCTYPE html>"))
    (chart,) = (found for found in page.iter("svg") if found.attrib["aria-label"] == "mrr by type of question")
    assert len(list(chart.iter("rect"))) == 1
    assert [text.text for text in chart.iter("text")] == ["many (5)", "100.0", "one (1)"]


def test_what_cannot_be_read_or_written_is_said_with_exit_code_two(tmp_path: Path, ours: Path) -> None:
    code, stdout, stderr = report(tmp_path / "nowhere.json")
    assert (code, stdout) == (2, "")
    assert "nowhere.json" in stderr
    code, _, stderr = report(ours, "--html", tmp_path / "nowhere" / "page.html")
    assert code == 2
    assert "page.html: can't be written" in stderr
