from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from benchmark import verify as module
from benchmark.errors import BenchError
from benchmark.verify import Condition, Verdict, app, data_files, in_folders, located, updated, verify

COMMAND = "python -m benchmark.longmemeval --data tiny.json --mode bm25"
TINY = Path(__file__).parent / "longmemeval_tiny.json"


class Bench:
    """A bench that finds these figures on a corpus of 10 questions."""

    def __init__(self, **figures: float) -> None:
        data = {"file": "tiny.json", "sha256": "", "questions": 10}
        self.report: dict[str, Any] = {
            "benchmark": "longmemeval",
            "n": 10,
            **figures,
            "manifest": {"data": data},
            "compare": None,
        }
        self.commands: list[Sequence[str]] = []

    def __call__(self, arguments: Sequence[str]) -> dict[str, Any]:
        self.commands.append(arguments)
        return self.report


@pytest.fixture
def paths(tmp_path: Path) -> dict[str, Path]:
    (tmp_path / "tiny.json").write_bytes(b"[]")
    return {"tiny.json": tmp_path / "tiny.json"}


def condition(**changed: Any) -> Condition:
    found: Condition = {
        "name": "tiny",
        "command": COMMAND,
        "files": {"tiny.json": sha256(b"[]").hexdigest()},
        "corpus": {"questions": 10},
        "figures": {"mrr": 0.5},
    }
    return found | changed  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (0.5, Verdict.OK),
        (0.50005, Verdict.OK),  # within 1e-4
        (0.5 + 1 / 10, Verdict.NEAR),  # one of ten questions
        (0.5 - 1 / 10, Verdict.NEAR),
        (0.5 - 2 / 10, Verdict.FAIL),
    ],
)
def test_a_figure_is_judged_by_how_far_it_is_off(paths: dict[str, Path], found: float, verdict: Verdict) -> None:
    assert [line[0] for line in verify(condition(), paths, Bench(mrr=found))] == [verdict]


def test_a_condition_may_set_its_own_tolerance(paths: dict[str, Path]) -> None:
    assert verify(condition(tolerance=0.05), paths, Bench(mrr=0.54))[0][0] is Verdict.OK


def test_a_figure_that_is_missing_fails(paths: dict[str, Path]) -> None:
    assert verify(condition(), paths, Bench()) == [(Verdict.FAIL, "mrr              missing, expected 0.5000")]


def test_a_file_that_is_not_at_hand_is_skipped_without_a_run() -> None:
    bench = Bench()
    assert verify(condition(), {}, bench) == [(Verdict.SKIP, "no tiny.json in --data-dir")]
    assert bench.commands == []


def test_another_file_of_that_name_is_a_wrong_corpus_and_is_not_run(paths: dict[str, Path]) -> None:
    paths["tiny.json"].write_bytes(b"[1]")
    bench = Bench(mrr=0.5)
    ((verdict, line),) = verify(condition(), paths, bench)
    assert (verdict, bench.commands) == (Verdict.FAIL, [])
    assert line.startswith("wrong corpus: tiny.json is not the file")


def test_a_corpus_that_is_read_differently_is_said_before_any_figure(paths: dict[str, Path]) -> None:
    ((verdict, line),) = verify(condition(corpus={"questions": 11}), paths, Bench(mrr=0.5))
    assert verdict is Verdict.FAIL
    assert line == "wrong corpus: read as {'questions': 10}, expected {'questions': 11}"


def test_a_condition_without_figures_is_skipped(paths: dict[str, Path]) -> None:
    bare: Condition = {"name": "new", "command": COMMAND}
    assert verify(bare, paths, Bench())[0] == (Verdict.SKIP, "holds no figures yet; --update fills them in")


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ({"mrr": 0.5}, [Verdict.OK]),
        ({"mrr": 0.45}, [Verdict.NEAR, Verdict.FAIL]),  # one question of ten off is near, but below the minimum
        ({}, [Verdict.FAIL, Verdict.FAIL]),
    ],
)
def test_a_figure_below_its_minimum_fails(paths: dict[str, Path], figures: dict[str, float], expected: list[Verdict]) -> None:
    assert [verdict for verdict, _ in verify(condition(minimum={"mrr": 0.5}), paths, Bench(**figures))] == expected


def test_an_update_fills_in_what_the_command_finds(paths: dict[str, Path]) -> None:
    bench = Bench(mrr=0.75)
    bench.report["compare"] = {"n": 8, "n_all": 9, "same_any5": 8, "shared": 9.5}
    found = updated({"name": "tiny", "command": COMMAND}, paths, bench)
    assert found == condition(figures={"n": 10, "mrr": 0.75, "agree_any@5": round(8 / 9, 6), "shared@10": 9.5 / 10})
    assert bench.commands == [["-m", "benchmark.longmemeval", "--data", str(paths["tiny.json"]), "--mode", "bm25"]]
    assert {verdict for verdict, _ in verify(found, paths, bench)} == {Verdict.OK}


def test_an_update_wants_the_data() -> None:
    with pytest.raises(BenchError, match=r"tiny: no tiny\.json in --data-dir"):
        updated(condition(), {}, Bench())


def test_data_files_stand_behind_their_options(tmp_path: Path) -> None:
    command = "python -m benchmark.longmemeval --data a.json --mode bm25 --compare b.json"
    assert data_files(command) == ["a.json", "b.json"]
    paths = {"a.json": tmp_path / "a.json", "b.json": tmp_path / "b.json"}
    assert located(command, paths)[2:] == ["--data", str(paths["a.json"]), "--mode", "bm25", "--compare", str(paths["b.json"])]


def test_the_first_folder_that_has_a_file_counts(tmp_path: Path) -> None:
    for folder, names in (("one", ["a"]), ("two", ["a", "b"])):
        (tmp_path / folder).mkdir()
        for name in names:
            (tmp_path / folder / name).touch()
    folders = [tmp_path / "one", tmp_path / "two"]
    assert in_folders(folders, ["a", "b", "c"]) == {"a": folders[0] / "a", "b": folders[1] / "b"}


def test_the_conditions_of_the_repository_name_files_of_this_bench() -> None:
    conditions: list[Condition] = json.loads(module.EXPECTED.read_text())
    assert len({found["name"] for found in conditions}) == len(conditions)
    for found in conditions:
        assert found["command"].startswith("python -m benchmark.")
        assert all(Path(name).name == name for name in data_files(found["command"]))
        assert sorted(found.get("files", {})) == sorted(data_files(found["command"])) or "files" not in found


def test_the_command_updates_verifies_and_tells_a_change(tmp_path: Path) -> None:
    expected = tmp_path / "expected.json"
    command = "python -m benchmark.longmemeval --data longmemeval_tiny.json --mode bm25"
    expected.write_text(json.dumps([{"name": "tiny", "command": command}]))
    options = ["--expected", str(expected), "--data-dir", str(TINY.parent), "--cache", str(tmp_path / "cache")]
    assert CliRunner().invoke(app, [*options, "--update"]).exit_code == 0

    again = CliRunner().invoke(app, options)
    assert again.exit_code == 0
    assert {line.split()[0] for line in again.stdout.splitlines()[1:]} == {"ok"}

    (found,) = json.loads(expected.read_text())
    found["figures"]["mrr"] = -1
    expected.write_text(json.dumps([found]))
    changed = CliRunner().invoke(app, options)
    assert changed.exit_code == 1
    assert "fail  mrr" in changed.stdout


def test_an_update_below_a_minimum_is_not_written(tmp_path: Path) -> None:
    expected = tmp_path / "expected.json"
    written = json.dumps([{"name": "tiny", "command": COMMAND.replace("tiny", "longmemeval_tiny"), "minimum": {"mrr": 1.5}}])
    expected.write_text(written)
    options = ["--expected", str(expected), "--data-dir", str(TINY.parent), "--cache", str(tmp_path / "cache"), "--update"]
    done = CliRunner().invoke(app, options)
    assert done.exit_code == 1
    assert "fail  mrr" in done.stdout
    assert "at least 1.5000" in done.stdout
    assert expected.read_text() == written


def test_nothing_to_verify_is_no_success() -> None:
    done = CliRunner().invoke(app, [])
    assert done.exit_code == 1
    assert "nothing was verified" in done.stderr


def test_the_seed_conditions_keep_to_what_was_asked_of_them() -> None:
    conditions: list[Condition] = json.loads(module.EXPECTED.read_text())
    seeds = [found["minimum"] for found in conditions if "--profile seed" in found["command"]]
    assert seeds == 2 * [{"agree_any@5": pytest.approx(30 / 31, abs=1e-4), "shared@10": 0.9}]


def test_an_unknown_condition_is_said_with_exit_code_two() -> None:
    done = CliRunner().invoke(app, ["nothing"])
    assert done.exit_code == 2
    assert "no condition nothing; there are" in done.stderr
