from __future__ import annotations

from collections.abc import Callable

import pytest
import typer

from benchmark.client import Mode
from benchmark.command import Conditions, Via, conditions, failures, progress
from benchmark.errors import BenchError
from memserver.errors import ConfigError

URL = "http://127.0.0.1:1"


@pytest.mark.parametrize(
    ("found", "label"),
    [
        (Conditions(), "default"),
        (Conditions("seed", Mode.BM25), "seed-bm25"),
        (Conditions(via=Via.HTTP, url=URL), "server"),
    ],
)
def test_conditions_have_a_name(found: Conditions, label: str) -> None:
    assert found.label == label


def test_settings_given_never_pass_for_the_profile() -> None:
    labels = [Conditions(given=given).label for given in ({}, {"depth": "10"}, {"depth": "20"})]
    assert len(set(labels)) == 3
    assert labels[1].startswith("default-set-")


def test_the_arguments_give_the_same_conditions_again() -> None:
    found = conditions("seed", Mode.BM25, ["depth=10", "legs=bm25/chunk=1"], None, "", "")
    assert found.given == {"depth": "10", "legs": "bm25/chunk=1"}
    assert found.arguments == ["--profile", "seed", "--mode", "bm25", "--set", "depth=10", "--set", "legs=bm25/chunk=1"]
    assert Conditions().arguments == []
    assert conditions("default", None, None, None, URL, "key").arguments == ["--via", "http", "--url", URL]


def test_a_key_is_shown_nowhere() -> None:
    assert "s3cret" not in repr(conditions("default", None, None, None, URL, "s3cret"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Conditions("no such"), "there are default, bm25"),
        (lambda: Conditions(via=Via.HTTP), "--via http and --url go together"),
        (lambda: Conditions(url=URL), "--via http and --url go together"),
        (lambda: Conditions("seed", via=Via.HTTP, url=URL), "has its own settings"),
        (lambda: conditions("default", None, ["depth"], None, "", ""), "--set wants KEY=VALUE"),
    ],
)
def test_options_that_contradict_each_other_are_refused(make: Callable[[], Conditions], message: str) -> None:
    with pytest.raises(BenchError, match=message):
        make()


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (BenchError("no such file"), 2, "bench: no such file"),
        (ConfigError("no such setting"), 2, "bench: no such setting"),
        (KeyboardInterrupt(), 130, "bench: interrupted\n"),
    ],
)
def test_a_failure_is_said_on_stderr_with_its_exit_code(
    capsys: pytest.CaptureFixture[str], error: BaseException, code: int, said: str
) -> None:
    with pytest.raises(typer.Exit) as caught, failures("bench"):
        raise error
    assert caught.value.exit_code == code
    assert said in capsys.readouterr().err


def test_only_a_run_that_can_be_resumed_is_said_to_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit), failures("bench", resumable=True):
        raise KeyboardInterrupt
    assert "the same command goes on where it stopped" in capsys.readouterr().err


def test_the_time_left_follows_from_what_is_done_whatever_the_step(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([100.0, 110.0, 100.0, 110.0])
    monkeypatch.setattr("benchmark.command.monotonic", lambda: next(clock))
    progress("requests")(20, 100)
    assert "10 s, about 40 s left" in capsys.readouterr().err  # 20 in 10 s, 80 to go
    progress("cases", known=15)(20, 100)
    assert "10 s, about 160 s left" in capsys.readouterr().err  # 5 in 10 s, 80 to go


def test_progress_counts_what_an_earlier_run_had_done_but_not_its_time(capsys: pytest.CaptureFixture[str]) -> None:
    show = progress("cases", known=2)
    for done in (3, 4):
        show(done, 4)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(",")[0] for line in lines] == ["3/4 cases", "4/4 cases"]
    assert lines[1].rstrip().endswith("about 0 s left")
