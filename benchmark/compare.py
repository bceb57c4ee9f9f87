"""Paired comparison with another system's published rows on the same questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmark.data import read_json
from benchmark.errors import BenchError
from benchmark.metrics import first_rank
from benchmark.summary import Outcome

DEPTH = 10  # what peers publish; a deeper rank counts as 11 on both sides

Rankings = Mapping[str, Sequence[str]]
"""The ranked session ids of a question, best first, by question id."""


@dataclass(frozen=True, slots=True)
class Paired:
    """On how many questions our first gold session ranks before, with and behind the peer's."""

    wins: int
    ties: int
    losses: int

    @property
    def n(self) -> int:
        return self.wins + self.ties + self.losses


def read_agentmemory(path: Path) -> Rankings:
    """agentmemory's result file: ``per_question`` rows with the first ten sessions. Raises ``BenchError``."""
    try:
        return {row["question_id"]: row["retrieved_session_ids"] for row in read_json(path)["per_question"]}
    except (KeyError, TypeError) as error:
        raise BenchError(f"{path}: not an agentmemory result file (per_question rows with retrieved_session_ids)") from error


def compare(outcomes: Sequence[Outcome], peer: Rankings) -> Paired:
    """Over the questions without abstention that both sides have, by the rank of the first gold session.

    Gold is what the data set says, on both sides; the peer's own gold is not read.
    """
    pairs = [
        (first_rank(one.ranked, one.gold, DEPTH), first_rank(peer[one.id], one.gold, DEPTH))
        for one in outcomes
        if one.id in peer and not one.abstention
    ]
    return Paired(
        wins=sum(ours < theirs for ours, theirs in pairs),
        ties=sum(ours == theirs for ours, theirs in pairs),
        losses=sum(ours > theirs for ours, theirs in pairs),
    )
