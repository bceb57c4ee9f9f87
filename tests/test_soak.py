"""Short soaks: the same scenarios, seconds long."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from benchmark.author import Author
from benchmark.soak import SCENARIOS, Scenario
from benchmark.soak_load import ADDS_A_USER, Users
from benchmark.soak_plan import Plan

NO_NEIGHBOURS = {"LEGS": "bm25/chunk=1, vectors/chunk=1"}


def test_a_load_without_errors_leaks_or_losses(tmp_path: Path) -> None:
    plan = Plan(tmp_path, {"EMBEDDER": "hashing"}, minutes=0.04, adds=8, searches=4, users=4)

    outcome = SCENARIOS[Scenario.LOAD](plan)

    assert outcome.problems == []
    assert min(outcome.figures[name] for name in ("adds", "searches", "acknowledged", "users")) > 0
    assert [line.split()[0] for line in outcome.detail.splitlines()[1:]] == ["RSS,", "Adds/s", "Searches/s"]


@pytest.mark.parametrize("scenario", [Scenario.GIANT, Scenario.REPEAT, Scenario.SHUFFLE])
def test_one_user_out_of_the_ordinary(tmp_path: Path, scenario: Scenario) -> None:
    plan = Plan(tmp_path, {"EMBEDDER": "hashing", **NO_NEIGHBOURS}, size=0.01 if scenario is Scenario.GIANT else 0.3)

    assert SCENARIOS[scenario](plan).problems == []


def test_every_add_of_a_load_is_new_and_a_full_user_makes_room() -> None:
    users, chance = Users(Author(0), active=2), Random(0)
    full = 2 * ADDS_A_USER

    given = [users.add(chance) for _ in range(10 * full)]

    assert len(set(given)) == 10 * full
    assert {number for _, number in given} == set(range(ADDS_A_USER))
    assert 10 * full / ADDS_A_USER <= len({user for user, _ in given}) <= 10 * full / ADDS_A_USER + 2
