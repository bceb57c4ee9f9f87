"""``python -m benchmark.fuzz``: no body may make the server fail, or have it write in its log what it was sent."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Annotated

import httpx
import typer

from benchmark.author import Author
from benchmark.command import AsJson, failures
from benchmark.fuzz_bodies import BOMBS, MARK, Sent, sent
from benchmark.outcome import Outcome, tell
from benchmark.server import Server, serving
from memserver.text import stems

IN_FLIGHT = 8
TIMEOUT = 600.0  # seconds; ten million characters take a while
TOKENISED = 2**20  # bytes of UTF-8
TOO_SLOW = 1.0  # seconds

app = typer.Typer(add_completion=False)


def bodies(folder: Path, seed: int, count: int) -> Outcome:
    """Send them; then the server must still answer, and nothing of them may stand in its log or in a refusal."""
    with serving(folder, {"EMBEDDER": "hashing", "LOG_LEVEL": "debug"}) as server:
        with _client(server) as client, ThreadPoolExecutor(IN_FLIGHT) as pool:
            outcomes = list(pool.map(lambda number: _sent(client, sent(seed, number)), range(count)))
            problems = [problem for _, found in outcomes for problem in found]
            problems += _alive(client, Author(seed))
        if MARK in server.log():
            problems.append("the log has text that was sent")
    statuses = Counter(status for status, _ in outcomes)
    told = ", ".join(f"{number} times {status}" for status, number in sorted(statuses.items()))
    return Outcome(told, problems, count)


def _client(server: Server) -> httpx.Client:
    headers = {"Content-Type": "application/json"}
    return httpx.Client(base_url=server.url, headers=headers, timeout=TIMEOUT, trust_env=False)


def _sent(client: httpx.Client, request: Sent) -> tuple[int, list[str]]:
    """The status, and what is wrong with the answer."""
    try:
        answer = client.post(request.path, content=request.body)
    except httpx.TransportError as error:
        return 0, [f"{request.kind}: no answer ({type(error).__name__})"]
    wrong = [f"{request.kind}: status {answer.status_code}"] if answer.is_server_error else []
    if not answer.is_success and MARK in answer.text:
        wrong.append(f"{request.kind}: the refusal repeats what was sent")
    return answer.status_code, wrong


def _alive(client: httpx.Client, author: Author) -> Iterator[str]:
    add = author.add(author.user(0), 0)
    if not client.post("/add", content=add.body).is_success or not client.get("/health").is_success:
        yield "the server does not work any more"


def tokenisation(seed: int) -> Outcome:
    """CPU seconds that a megabyte of each kind of text takes to become terms. A figure of this machine: nothing fails by it."""
    chance = Random(seed)
    texts = {name: pattern * TOKENISED for name, pattern in BOMBS.items()}
    texts["random letters"] = " ".join("".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=7)) for _ in range(TOKENISED // 8))
    texts["random Chinese"] = "".join(chr(chance.randrange(0x4E00, 0x9FFF)) for _ in range(TOKENISED // 3))
    texts["random characters"] = "".join(chr(chance.randrange(0x20, 0xD7FF)) for _ in range(TOKENISED))
    seconds = {name: _seconds(text.encode()[:TOKENISED].decode(errors="ignore")) for name, text in texts.items()}
    slowest = sorted(seconds, key=lambda name: -seconds[name])[:3]
    slow = sum(value > TOO_SLOW for value in seconds.values())
    told = ", ".join(f"{name} {seconds[name]:.2f} s" for name in slowest)
    return Outcome(f"1 MB of {len(texts)} kinds, {slow} over {TOO_SLOW:g} s: {told}", rounds=len(texts), figures=seconds)


def _seconds(text: str) -> float:
    started = time.thread_time()
    stems(text)
    return time.thread_time() - started


@app.command()
def main(
    count: Annotated[int, typer.Option("--bodies", min=1, help="How many.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Of the bodies.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Exit code 1 if the server failed or told what it was sent."""
    with failures("fuzz"), TemporaryDirectory(prefix="memserver-fuzz-") as directory:
        outcomes = {"bodies": bodies(Path(directory), seed, count), "tokenisation": tokenisation(seed)}
    tell(outcomes, as_json=as_json)


if __name__ == "__main__":
    app()
