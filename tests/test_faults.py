"""Short trials of every fault, and that the trials would notice what they look for."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmark import fault_disk
from benchmark.author import Author
from benchmark.fault_clock import STEPS
from benchmark.faults import FAULTS, app, attempt
from benchmark.outcome import Outcome, table
from benchmark.server import Refused, serving
from benchmark.traffic import Sent
from benchmark.trial import Trial

HASHING = {"EMBEDDER": "hashing"}
SLOW = {"locked"}  # it waits until SQLite gives up, 30 seconds


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return Trial(tmp_path / "trial", seed=0, rounds=2, settings=HASHING)


@pytest.mark.parametrize("name", sorted(FAULTS.keys() - SLOW))
def test_nothing_is_lost_doubled_or_wrongly_said(name: str, trial: Trial) -> None:
    assert attempt(FAULTS[name], trial).problems == []


def test_without_root_the_disk_is_made_small_by_a_limit(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fault_disk, "_mounted", lambda _: False)

    outcome = attempt(FAULTS["disk-full"], trial)

    assert outcome.problems == []
    assert outcome.detail.startswith("a limit on the size of files: ")


def test_an_audit_counts_what_is_lost_torn_and_strange(trial: Trial) -> None:
    user = trial.author.user(0)
    stored, torn, lost, strange = (trial.author.add(user, number) for number in range(4))
    with trial.server() as (_, traffic):
        traffic.add(stored)
        assert traffic.audit() == []

        traffic.add(torn)
        traffic.sent[torn.request] = Sent(user, (*torn.ids, "an id that is not there"))
        traffic.sent[lost.request] = Sent(user, lost.ids)
        traffic.acknowledged.add(lost.request)
        traffic.add(strange)
        del traffic.sent[strange.request]

        assert set(traffic.audit()) == {
            "2 acknowledged Adds lost",  # the torn one was acknowledged, too
            "1 Adds stored in part",
            f"{len(strange.ids)} messages that nobody sent",
        }


def test_a_hit_without_the_sentinel_of_its_user_is_a_problem(trial: Trial) -> None:
    user = trial.author.user(0)
    with trial.server() as (_, traffic):
        add = trial.author.add(user, 0)
        traffic.add(add)
        traffic.author = Author(seed=1)

        traffic.search(user, "who said it?")

        assert traffic.problems == [f"{len(add.texts)} of {len(add.texts)} hits are not the user's own"]


def test_a_server_that_does_not_start_tells_why(tmp_path: Path) -> None:
    with (
        serving(tmp_path, {"EMBEDDER": "none"}, started=False) as server,
        pytest.raises(Refused, match="choose an embedder") as told,
    ):
        server.start()

    assert told.value.exit_code == 2


def test_a_server_that_ended_by_itself_is_told_from_one_that_runs(trial: Trial) -> None:
    with trial.server() as (server, _):
        assert server.gone() == []
        os.kill(server.pid, signal.SIGKILL)
        server.ended()

        assert server.gone() == ["the server ended by itself, exit code -9: "]


def test_an_author_writes_the_same_again_and_marks_all_that_is_kept() -> None:
    author, user = Author(seed=0, most=20, long=0.2, blank=0.2), "user:0:0/é"
    adds = [author.add(user, number) for number in range(20)]

    assert adds == [Author(seed=0, most=20, long=0.2, blank=0.2).add(user, number) for number in range(20)]
    assert all(author.sentinel(user) in text for add in adds for text in add.texts)
    assert max(len(text) for add in adds for text in add.texts) == 8_000
    sent = sum(len(json.loads(add.body)["messages"]) for add in adds)
    assert sum(len(add.texts) for add in adds) < sent
    assert author.sentinel(user) != author.sentinel("user:0:0/e")


def test_the_table_has_a_line_for_each_fault_and_quotes_its_first_problems() -> None:
    outcomes = {"kill": Outcome("12 kills", rounds=12), "page": Outcome("1 page", [f"problem {n}" for n in range(5)])}

    assert table(outcomes).splitlines() == [
        "name  rounds  result  detail",
        "kill      12  ok      12 kills",
        "page       1  FAILED  1 page",
        "              problem 0",
        "              problem 1",
        "              problem 2",
        "              and 2 more",
    ]


def test_the_command_tells_json_and_refuses_what_it_does_not_know() -> None:
    told = CliRunner().invoke(app, ["--only", "clock", "--json"])
    assert told.exit_code == 0
    outcome = json.loads(told.stdout)["clock"]
    assert (outcome["result"], outcome["rounds"], outcome["problems"]) == ("ok", len(STEPS), [])

    assert CliRunner().invoke(app, ["--only", "earthquake"]).exit_code == 2
