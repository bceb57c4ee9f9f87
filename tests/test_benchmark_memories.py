from __future__ import annotations

from collections.abc import Mapping

import pytest

from benchmark.errors import BenchError
from benchmark.memories import Stoppable, Timed
from memserver.types import Hit


class Memory:
    def add(self, body: bytes) -> None:
        if body == b"bad":
            raise ValueError("bad")

    def search(self, body: bytes) -> list[Hit]:
        return [Hit(body.decode(), "", 1.0)]

    def describe(self) -> Mapping[str, object]:
        return {"version": "1"}


def test_each_add_and_search_is_timed_and_told_and_answers_as_before() -> None:
    told: list[str] = []
    timed = Timed(Memory(), lambda: told.append("answered"))
    timed.add(b"good")
    assert timed.search(b"q") == [Hit("q", "", 1.0)]
    assert timed.describe() == {"version": "1"}
    assert (len(timed.add_ms), len(timed.search_ms), len(told)) == (1, 1, 2)
    assert min(*timed.add_ms, *timed.search_ms) >= 0


def test_what_failed_is_not_timed() -> None:
    timed = Timed(Memory(), lambda: None)
    with pytest.raises(ValueError, match="bad"):
        timed.add(b"bad")
    assert timed.add_ms == []


def test_a_memory_answers_until_it_is_told_to_stop() -> None:
    stoppable = Stoppable(Memory())
    stoppable.add(b"good")
    assert stoppable.search(b"q") == [Hit("q", "", 1.0)]
    stoppable.stop()
    with pytest.raises(BenchError, match="stopped"):
        stoppable.add(b"good")
    with pytest.raises(BenchError, match="stopped"):
        stoppable.search(b"q")
    assert stoppable.describe() == {"version": "1"}
