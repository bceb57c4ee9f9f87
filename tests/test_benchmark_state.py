from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from benchmark.state import State
from benchmark.summary import Outcome

ONE = Outcome("1", "t", False, frozenset({"a"}), ("b", "a"), ((0, 1), (2, 0)), frozenset({(2, 0)}), 2, 1.0, (1.5, 2.5), 3.5)
TWO = Outcome("2", "t", True, frozenset({"a"}), ())


def test_a_run_that_stopped_knows_its_outcomes_when_it_starts_again(tmp_path: Path) -> None:
    state = State(tmp_path, {"seed": 0})
    assert state.known == {}
    state.add(ONE)
    state.add(TWO)
    assert State(tmp_path, {"seed": 0}).known == {"1": ONE, "2": TWO}


def test_another_condition_knows_nothing_of_it(tmp_path: Path) -> None:
    State(tmp_path, {"seed": 0}).add(ONE)
    assert State(tmp_path, {"seed": 1}).known == {}


def test_a_finished_run_leaves_nothing_behind(tmp_path: Path) -> None:
    state = State(tmp_path, {})
    state.add(ONE)
    state.finish()
    assert list(tmp_path.iterdir()) == []
    state.finish()


def test_a_line_that_broke_off_costs_that_outcome_alone(tmp_path: Path) -> None:
    State(tmp_path, {}).add(ONE)
    (path,) = tmp_path.iterdir()
    with path.open("ab") as file:
        file.write(b'\n{"id": "2", "ty')
    again = State(tmp_path, {})
    assert again.known == {"1": ONE}
    again.add(TWO)
    assert State(tmp_path, {}).known == {"1": ONE, "2": TWO}


@given(st.builds(Outcome, containment=st.none() | st.floats(0, 1), search_ms=st.floats(0, 1e6)))
def test_any_outcome_survives_the_file(outcome: Outcome) -> None:
    adapter = TypeAdapter(Outcome)
    assert adapter.validate_json(adapter.dump_json(outcome)) == outcome
