"""``python -m benchmark.compare A B``: two systems on the questions both have, question by question."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Annotated

import typer

from benchmark.command import AsJson, failures
from benchmark.errors import BenchError
from benchmark.sets_data import SETS
from benchmark.stats import bootstrap_interval, sign_test
from benchmark.systems import DEPTH, Row, System, align, read_system

METRICS: Mapping[str, Sequence[str]] = {
    "longmemeval": ("recall_any@1", "recall_any@5", "recall_any@10", "recall_all@5", "ndcg@10", "mrr@10"),
    "locomo": ("any@10", "recall@10", "recall@100", "ndcg@10", "mrr", "session_any@5"),
    **dict.fromkeys(SETS, ("any@1", "any@5", "recall@5", "recall@10", "mrr")),
}
SEED = 0  # of the bootstrap

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True, slots=True)
class Delta:
    """A metric's mean in A and in B, fractions, and the 95% interval of the mean paired difference A - B."""

    a: float
    b: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Change:
    """A question whose first gold item ranks differently; ``Comparison.depth`` + 1 stands for any rank beyond it."""

    id: str
    type: str
    a: int
    b: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """A against B over ``n`` scored questions.

    ``wins``: A's first gold item ranks before B's, ranks beyond ``depth`` being alike: ten beside a peer, who publishes no more,
    else the deepest rank at which either found one; ``p``: two-sided sign test of wins against losses. Agreement, which says how
    well one system rebuilds another, is over all ``n_all`` common questions: on ``same_any5`` of them both find a gold session
    among five or neither does; ``shared`` of the first ten sessions are the same, on average.
    """

    n: int
    depth: int
    wins: int
    ties: int
    losses: int
    p: float
    metrics: Mapping[str, Delta]
    n_all: int
    same_any5: int
    shared: float
    changes: Sequence[Change]


def paired(a: System, b: System) -> Comparison:
    """Raises ``BenchError`` where no scored question is common to both."""
    left, right = align([a, b])
    pairs = [(id, row, right.rows[id]) for id, row in left.rows.items() if row.scored]
    if not pairs:
        raise BenchError(f"no scored question is common to {a.name} and {b.name}")
    rows = [(ours, theirs) for _, ours, theirs in pairs]
    every = [(row, right.rows[id]) for id, row in left.rows.items()]
    depth = max(row.rank or 1 for pair in rows for row in pair) if _have("mrr", rows) else DEPTH
    ranks = [(id, ours.type, _cut(ours.rank, depth), _cut(theirs.rank, depth)) for id, ours, theirs in pairs]
    changes = [Change(*each) for each in ranks if each[2] != each[3]]
    wins = sum(change.a < change.b for change in changes)
    any5 = "recall_any@5" if a.benchmark == "longmemeval" else "session_any@5"
    return Comparison(
        n=len(rows),
        depth=depth,
        wins=wins,
        ties=len(rows) - len(changes),
        losses=len(changes) - wins,
        p=sign_test(wins, len(changes) - wins),
        metrics={name: _delta(name, rows) for name in METRICS[a.benchmark] if _have(name, rows)},
        n_all=len(every),
        same_any5=sum(ours.metrics[any5] == theirs.metrics[any5] for ours, theirs in every),
        shared=fmean(len(set(ours.ranked) & set(theirs.ranked)) for ours, theirs in every),
        changes=sorted(changes, key=lambda change: (change.a - change.b, change.id)),
    )


def table(a: str, b: str, found: Comparison) -> str:
    """What people read: the verdict, a row a metric in per cent, agreement, and the questions that changed."""
    lines = [
        f"A  {a}",
        f"B  {b}",
        "",
        f"{found.n} questions: A wins {found.wins}, ties {found.ties}, loses {found.losses} (sign test p {p_value(found.p)}),",
        f"by the rank of the first gold item, beyond {found.depth} counted as {found.depth + 1}",
        "",
        f"{'':14}{'A':>7}{'B':>7}{'A - B':>8}  95% interval",
    ]
    for name, delta in found.metrics.items():
        a_, b_, low, high = (100 * value for value in (delta.a, delta.b, delta.low, delta.high))
        lines.append(f"{name:14}{a_:7.1f}{b_:7.1f}{a_ - b_:+8.1f}  [{low:+.1f}, {high:+.1f}]")
    lines += [
        "",
        f"agreement: any@5 alike on {found.same_any5} of {found.n_all} questions, {found.shared:.2f} of ten sessions shared",
    ]
    if found.changes:
        lines += ["", "rank of the first gold item, where it differs:", f"{'A':>4}{'B':>4}  question"]
        for change in found.changes:
            a_rank, b_rank = (_rank(rank, found.depth) for rank in (change.a, change.b))
            lines.append(f"{a_rank:>4}{b_rank:>4}  {change.id} ({change.type})")
    return "\n".join(lines)


def p_value(p: float) -> str:
    """As text: three digits say all that such small samples can."""
    return "< .001" if p < 0.001 else f"{p:.3f}"


def _delta(name: str, rows: Sequence[tuple[Row, Row]]) -> Delta:
    a, b = ([row.metrics[name] for row in side] for side in zip(*rows, strict=True))
    low, high = bootstrap_interval([ours - theirs for ours, theirs in zip(a, b, strict=True)], SEED)
    return Delta(fmean(a), fmean(b), low, high)


def _have(name: str, rows: Sequence[tuple[Row, Row]]) -> bool:
    return all(name in row.metrics for pair in rows for row in pair)


def _cut(rank: int | None, depth: int) -> int:
    return min(rank or depth + 1, depth + 1)


def _rank(rank: int, depth: int) -> str:
    return str(rank) if rank <= depth else f">{depth}"


@app.command()
def main(
    a: Annotated[Path, typer.Argument(help="Our result file, or agentmemory's, memesh's (.json) or memweave's (.jsonl).")],
    b: Annotated[Path, typer.Argument(help="Another one, of the same questions.")],
    as_json: AsJson = False,
) -> None:
    """Set two systems against each other on the questions that both have, abstentions apart."""
    with failures("compare"):
        systems = read_system(a), read_system(b)
        found = paired(*systems)
    names = systems[0].name, systems[1].name
    typer.echo(table(*names, found))
    if as_json:
        typer.echo(json.dumps({"a": names[0], "b": names[1], **asdict(found)}))


if __name__ == "__main__":
    app()
