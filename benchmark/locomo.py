"""``python -m benchmark.locomo --data FILE``: LoCoMo's evidence retrieval, turn by turn, through the product's own path."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from pathlib import Path
from time import monotonic
from typing import Annotated

import typer

from benchmark import command
from benchmark.client import Memory, mode_of
from benchmark.command import Conditions, Progress
from benchmark.errors import BenchError
from benchmark.evidence import CHARACTERS, TOKENS, cut_tokens, exact_match, token_f1
from benchmark.locomo_data import ADVERSARIAL, Conversation, load_conversations, statistics
from benchmark.locomo_play import Outcome, play, requests
from benchmark.memories import Stoppable, Timed
from benchmark.play import PLATFORM
from benchmark.profiles import style
from benchmark.reader import Reader
from benchmark.results import FOLDER, Question, Result, describe_file, make_manifest, save
from benchmark.stats import percentiles
from benchmark.summary import flat, latencies, means, summarise, table

NAME = "locomo"
READER_TOKENS = 1000  # what a small model on a small machine reads in seconds

HEADLINE = ("recall@10", "any@10", "recall@100", "mrr", "session_any@5")

COLUMNS: Mapping[str, str] = {
    **{name: name for name in ("any@5", "any@10", "recall@10", "recall@100", "ndcg@10", "mrr")},
    **{"session_any@5": "s.any@5", "session_recall@10": "s.recall@10"},
    **{f"evidence@{CHARACTERS}chars": "ev@50k", f"evidence@{TOKENS}tokens": "ev@118k", "containment": "contained"},
    **{"reader_f1": "F1", "reader_em": "EM"},
}
"""What the table shows, and under which heading."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def run(conversations: Sequence[Conversation], memory: Memory, seed: int, concurrency: int) -> list[Outcome]:
    """Play the conversations, ``concurrency`` of them at a time; outcomes in the order of the file."""
    stoppable = Stoppable(memory)
    with ThreadPoolExecutor(concurrency) as pool:
        try:
            played = pool.map(lambda conversation: play(conversation, stoppable, seed), conversations)
            return [outcome for outcomes in played for outcome in outcomes]
        except BaseException:
            stoppable.stop()  # else a failure or an interrupt would wait until the other conversations are played
            raise


def read(outcomes: Sequence[Outcome], reader: Reader, tokens: int, progress: Progress) -> dict[str, dict[str, float]]:
    """What the reader made of the first ``tokens`` of each scored question's contents: its metrics by question id."""
    scored = [outcome.question for outcome in outcomes if outcome.question.scored]
    memories = {outcome.question.id: cut_tokens(outcome.contents, tokens) for outcome in outcomes}
    found = {}
    for done, question in enumerate(scored, 1):
        answer = reader.answer(question.text, memories[question.id])
        found[question.id] = {"reader_f1": token_f1(answer, question.answer), "reader_em": exact_match(answer, question.answer)}
        progress(done, len(scored))
    return found


def measure(
    data: Path,
    conditions: Conditions,
    *,
    seed: int = 0,
    cache: Path = command.CACHE,
    concurrency: int = 4,
    limit: int | None = None,
    reader: Reader | None = None,
    reader_tokens: int = READER_TOKENS,
) -> Result:
    """A run under these conditions, over the first ``limit`` conversations. Raises ``BenchError``, ``ConfigError``."""
    if style(conditions.profile) != PLATFORM:
        raise BenchError(f"--profile {conditions.profile}: its hits are whole sessions, but LoCoMo's evidence are turns")
    options = [
        *(["--limit", str(limit)] if limit else []),
        *(["--seed", str(seed)] if seed else []),
        *(["--reader", "URL", "--reader-model", reader.model, "--reader-tokens", str(reader_tokens)] if reader else []),
    ]
    started = monotonic()
    every = load_conversations(data)
    conversations = every[:limit]
    with conditions.open(cache) as memory:
        timed = Timed(memory, command.counter(sum(map(requests, conversations)), command.progress("requests")))
        outcomes = run(conversations, timed, seed, concurrency)
        product, usage, cached = memory.describe(), memory.usage(), memory.cached()
    answers = read(outcomes, reader, reader_tokens, command.progress("answers")) if reader else {}
    questions = [_with(outcome.row(), answers.get(outcome.question.id, {})) for outcome in outcomes]
    summary = summarise(questions, seed)
    adversarial = [question for question in questions if question["type"] == ADVERSARIAL]
    answering = {**reader.describe(), "memory_tokens": reader_tokens} if reader else None
    manifest = make_manifest(
        command=shlex.join(["python", "-m", f"benchmark.{NAME}", "--data", data.name, *conditions.arguments, *options]),
        profile=conditions.label,
        mode=mode_of(product),
        via=conditions.via,
        product=product,
        data={**describe_file(data), **statistics(every)},
        seed=seed,
        seconds=monotonic() - started,
        partial=len(conversations) < len(every),
        concurrency=concurrency,
        cached=cached,
    )
    return Result(
        benchmark=NAME,
        manifest={**manifest, "reader": answering},
        summary={"scored": summary.scored, "all": summary.all},
        intervals=summary.intervals,
        types={**summary.types, **({ADVERSARIAL: means(adversarial)} if adversarial else {})},
        performance={"add_ms": percentiles(timed.add_ms), "search_ms": percentiles(timed.search_ms), **usage},
        questions=questions,
    )


@app.command()
def main(
    data: Annotated[Path, typer.Option(help="The data set's own file (locomo10.json), plain or .gz.")],
    limit: command.Limit = None,
    profile: command.ProfileOption = "default",
    mode: command.ModeOption = None,
    set_: command.Set = None,
    via: command.ViaOption = None,
    url: command.Url = "",
    api_key: command.ApiKey = "",
    reader_url: Annotated[str, typer.Option("--reader", help="An OpenAI-compatible endpoint that answers, .../v1.")] = "",
    reader_model: Annotated[str, typer.Option(help="The reader's model.")] = "",
    reader_key: Annotated[str, typer.Option(envvar="BENCH_READER_KEY", help="The reader's key.")] = "",
    reader_tokens: Annotated[int, typer.Option(min=1, help="Memories the reader gets, tokens of 4 bytes.")] = READER_TOKENS,
    concurrency: Annotated[int, typer.Option(min=1, help="How many conversations (users) are played at once.")] = 4,
    seed: command.Seed = 0,
    cache: command.Cache = command.CACHE,
    folder: Annotated[Path, typer.Option("--save", help="Folder of the result file.")] = FOLDER,
    no_save: command.NoSave = False,
    as_json: command.AsJson = False,
) -> None:
    """Play LoCoMo through Add and Search, and print how well the turns that hold the evidence were found."""
    with command.failures(NAME):
        if bool(reader_url) != bool(reader_model):
            raise BenchError("--reader and --reader-model go together: where the model is, and its name")
        conditions = command.conditions(profile, mode, set_, via, url, api_key)
        answering = closing(Reader(reader_url, reader_model, cache, reader_key)) if reader_url else nullcontext()
        with answering as reader:
            result = measure(
                data,
                conditions,
                seed=seed,
                cache=cache,
                concurrency=concurrency,
                limit=limit,
                reader=reader,
                reader_tokens=reader_tokens,
            )
        typer.echo(report(result))  # first: a file that can't be written must not cost what was measured
        saved = None if no_save or result.manifest["partial"] else save(result, folder)
    if saved:
        typer.echo(f"\nsaved as {saved}")
    elif result.manifest["partial"]:
        typer.echo("\na part of the questions: not saved")
    if as_json:
        typer.echo(json.dumps(flat(result, HEADLINE) | {"saved": str(saved) if saved else None}))


def report(result: Result) -> str:
    """The result for people: the table of the groups in per cent, what it leaves out, and the times."""
    corpus = result.manifest["data"]
    contained = sum("containment" in question["metrics"] for question in result.questions)
    lines = [
        table(result, {metric: heading for metric, heading in COLUMNS.items() if metric in result.summary["scored"]}),
        "",
        f"{corpus['questions_without_evidence']} of {corpus['questions']} questions have no evidence and were not asked, "
        f"{corpus['unresolved_evidence']} more pieces of evidence name no turn",
        f"contained: a proxy, over the {contained} questions with a short answer",
    ]
    return "\n".join([*lines, *latencies(result)])


def _with(row: Question, metrics: Mapping[str, float]) -> Question:
    return {**row, "metrics": {**row["metrics"], **metrics}}


if __name__ == "__main__":
    app()
