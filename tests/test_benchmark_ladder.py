from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from benchmark.errors import BenchError
from benchmark.evidence import containment
from benchmark.ladder import DRAWS, RUNGS, app, choose
from benchmark.locomo_data import load_conversations
from benchmark.profiles import PROFILES
from benchmark.results import load
from benchmark.sets_data import SETS

HERE = Path(__file__).parent
LONGMEMEVAL = ("--data", HERE / "longmemeval_tiny.json")
LOCOMO = ("--data", HERE / "locomo_tiny.json", "--benchmark", "locomo")
HASHING = ("--set", "embedder=hashing")


def ladder(cache: Path, *arguments: object) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of the command."""
    run = CliRunner().invoke(app, [*map(str, arguments), "--cache", str(cache)])
    return run.exit_code, run.stdout, run.stderr


def climbed(cache: Path, *arguments: object) -> dict[str, dict[str, Any]]:
    """The rows of the JSON object, by name."""
    code, stdout, stderr = ladder(cache, *arguments, "--json")
    assert code == 0, stderr
    return {row["name"]: row for row in json.loads(stdout.splitlines()[-1])["rows"]}


def test_every_profile_has_a_rung_between_nothing_and_the_oracle() -> None:
    assert set(RUNGS) == {"nothing", "random", "oracle", *PROFILES}
    assert (RUNGS[0], RUNGS[-1]) == ("nothing", "oracle")


def test_rungs_are_chosen_by_name_in_the_ladders_order() -> None:
    names = ["nothing", "bm25", "default"]
    assert choose(names, "", "") == names
    assert choose(names, "default, nothing", "") == ["nothing", "default"]
    assert choose(names, "", "bm25") == ["nothing", "default"]


@pytest.mark.parametrize(("only", "skip", "message"), [("x", "", "rung x"), ("", "y", "rung y"), ("bm25", "bm25", "leave no")])
def test_an_impossible_choice_is_refused(only: str, skip: str, message: str) -> None:
    with pytest.raises(BenchError, match=message):
        choose(["bm25"], only, skip)


def test_the_whole_ladder_climbs_from_nothing_to_the_oracle(tmp_path: Path) -> None:
    rows = climbed(tmp_path, *LONGMEMEVAL, *HASHING, "--skip", "seed")
    assert list(rows) == [name for name in RUNGS if name != "seed"]
    assert rows["nothing"]["metrics"]["mrr"] == 0
    assert rows["oracle"]["metrics"]["mrr"] == rows["oracle"]["metrics"]["recall_all@5"] == 1
    assert all(0 <= row["metrics"]["mrr"] <= 1 for row in rows.values())


def test_each_rung_is_paired_with_the_default(tmp_path: Path) -> None:
    rows = climbed(tmp_path, *LONGMEMEVAL, *HASHING, "--only", "nothing,default,oracle")
    assert rows["default"]["versus_default"] is None
    assert {key: rows["nothing"]["versus_default"][key] for key in ("wins", "ties", "losses")} == {
        "wins": 0,
        "ties": 0,
        "losses": rows["default"]["n"],
    }


def test_without_the_default_nothing_is_paired(tmp_path: Path) -> None:
    assert climbed(tmp_path, *LONGMEMEVAL, "--only", "nothing")["nothing"]["versus_default"] is None


def test_locomo_has_no_seed_rung(tmp_path: Path) -> None:
    rows = climbed(tmp_path, *LOCOMO, *HASHING, "--only", "nothing,bm25,oracle")
    assert (rows["nothing"]["metrics"]["recall@10"], rows["oracle"]["metrics"]["recall@10"]) == (0, 1)
    code, _, stderr = ladder(tmp_path, *LOCOMO, "--only", "seed")
    assert code == 2
    assert "no rung seed" in stderr


@pytest.mark.parametrize("name", SETS)
def test_our_own_sets_need_no_data_and_have_no_seed_rung(tmp_path: Path, name: str) -> None:
    code, stdout, stderr = ladder(tmp_path, "--benchmark", name, "--only", "nothing,oracle")
    assert code == 0, stderr
    header, _, bottom, top, *rest = stdout.splitlines()
    assert header == "|  | any@1 | any@5 | recall@5 | recall@10 | mrr | win / tie / loss | p |"
    assert bottom == "| nothing | 0.0 | 0.0 | 0.0 | 0.0 | 0.0 |  |  |"
    assert top == "| oracle | 100.0 | 100.0 | 100.0 | 100.0 | 100.0 |  |  |"
    assert any(line.startswith(f"`python -m benchmark.ladder --benchmark={name} --only=nothing,oracle`") for line in rest)
    assert "no rung seed" in ladder(tmp_path, "--benchmark", name, "--only", "seed")[2]


def test_a_part_of_a_set_can_be_climbed(tmp_path: Path) -> None:
    rows = climbed(tmp_path, "--benchmark", "chinese", "--limit", 5, "--only", "nothing,bm25")
    assert [row["n"] for row in rows.values()] == [5, 5]
    assert rows["bm25"]["metrics"]["mrr"] > 0


def test_the_table_is_markdown_and_names_the_command_that_made_it(tmp_path: Path) -> None:
    code, stdout, stderr = ladder(tmp_path, *LONGMEMEVAL, *HASHING, "--only", "nothing,default", "--seed", 3)
    header, rule, bottom, default, _, note, uncorrected, made_by = stdout.splitlines()
    assert code == 0
    session, turn = "any@1 | any@5 | all@5 | ndcg@10 | mrr", "turn_any@10 | turn_recall@10 | evidence@50k characters"
    assert header == f"|  | {session} | {turn} | containment | win / tie / loss | p |"
    assert rule.count("|") == header.count("|") == bottom.count("|") == default.count("|")
    assert bottom.startswith("| nothing | 0.0 | 0.0 | 0.0 | 0.0 | 0.0 |")
    assert default.startswith("| **default** | ")
    command = "python -m benchmark.ladder --benchmark=longmemeval --data=longmemeval_tiny.json --only=nothing,default --seed=3"
    assert note.startswith(f"`{command} --set=embedder=hashing`: 2 questions")
    assert uncorrected == "p is not corrected for the 1 rungs held against the default."
    digest = sha256((HERE / "longmemeval_tiny.json").read_bytes()).hexdigest()
    assert made_by.startswith("commit ")
    assert f"; longmemeval_tiny.json {digest[:12]}; hashing " in made_by
    assert "default (2/2)" in stderr.splitlines()


def test_the_head_of_a_column_counts_its_questions_where_not_all_have_it(tmp_path: Path) -> None:
    code, stdout, stderr = ladder(tmp_path, *LOCOMO, "--only", "random")
    assert code == 0, stderr
    questions = [question for conversation in load_conversations(HERE / "locomo_tiny.json") for question in conversation.asked]
    short = sum(question.scored and containment(question.answer, "") is not None for question in questions)
    assert 0 < short < sum(question.scored for question in questions)
    assert f" | containment (n {short}) | " in stdout.splitlines()[0]


def test_random_history_is_the_mean_of_its_draws_within_the_settings(tmp_path: Path) -> None:
    whole, short = (
        climbed(tmp_path, *LONGMEMEVAL, "--only", "random", "--set", f"result_chars={budget}")["random"]["metrics"]
        for budget in (0, 1)
    )
    assert (whole["recall_any@10"], whole["turn_recall@100"]) == (1, 1)  # all of a short history comes back
    assert 0 < short["recall_any@10"] == short["recall_any@1"] < 1  # the first message alone
    found = 2 * DRAWS * short["recall_any@1"]  # of two questions in each draw
    assert found == pytest.approx(round(found))


def test_result_files_of_the_profiles_can_be_kept(tmp_path: Path) -> None:
    code, _, stderr = ladder(tmp_path, *LONGMEMEVAL, "--only", "nothing,bm25", "--save", tmp_path / "results")
    assert code == 0, stderr
    (path,) = (tmp_path / "results").iterdir()
    assert load(path).manifest["profile"] == "bm25"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--benchmark longmemeval needs --data"),
        (["--data", "nowhere.json"], "nowhere.json: can't be read"),
        ([*LONGMEMEVAL, "--set", "x"], "--set wants KEY=VALUE"),
        ([*LONGMEMEVAL, "--only", "x"], "no rung x: there are nothing, random"),
        ([*LONGMEMEVAL, "--limit", "1", "--save", "results"], "--save and --limit don't go together"),
    ],
)
def test_what_cannot_be_run_is_said_with_exit_code_two(tmp_path: Path, arguments: list[object], message: str) -> None:
    code, stdout, stderr = ladder(tmp_path, *arguments)
    assert (code, stdout) == (2, "")
    assert message in stderr
