"""What the benches' commands share: their options, the product they name, progress, and how a failure is said."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Annotated

import typer

from benchmark.client import EngineMemory, HttpMemory, Mode, in_process, running
from benchmark.errors import BenchError
from benchmark.profiles import PROFILES
from memserver.errors import MemserverError

CACHE = Path.home() / ".cache" / "memserver-bench"

Progress = Callable[[int, int], None]
"""Told how many cases of how many are done."""


class Via(StrEnum):
    """How the product is reached: its engine in this process, or a running server."""

    ENGINE = "engine"
    HTTP = "http"


Limit = Annotated[int | None, typer.Option(min=1, help="Play the first N only; such a run is not saved.")]
ModeOption = Annotated[Mode | None, typer.Option(help="Which of the profile's legs (default: hybrid, all of them).")]
ProfileOption = Annotated[str, typer.Option(help="Named settings: " + ", ".join(PROFILES) + ".")]
Set = Annotated[list[str] | None, typer.Option("--set", help="KEY=VALUE, a setting of the engine; wins over the profile.")]
ViaOption = Annotated[Via | None, typer.Option(help="The engine in this process, or a running server (default with --url).")]
Url = Annotated[str, typer.Option(help="The running server, which is measured with its own settings.")]
ApiKey = Annotated[str, typer.Option(envvar="BENCH_API_KEY", help="The running server's key.")]
Seed = Annotated[int, typer.Option(help="Of the opaque user, session and request ids, and of the bootstrap.")]
Cache = Annotated[Path, typer.Option(help="Folder where vectors are kept for the next run, and an unfinished run's outcomes.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line.")]
NoSave = Annotated[bool, typer.Option("--no-save", help="Save no result file.")]


@dataclass(frozen=True)
class Conditions:
    """What is measured. ``given``: settings over those of the profile; ``url`` and ``api_key``: of the running server, if any.

    Raises ``BenchError`` for options that contradict each other.
    """

    profile: str = "default"
    mode: Mode | None = None
    given: Mapping[str, str] = field(default_factory=dict)
    via: Via = Via.ENGINE
    url: str = ""
    api_key: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if self.profile not in PROFILES:
            raise BenchError(f"--profile {self.profile}: there are {', '.join(PROFILES)}")
        if (self.via is Via.HTTP) != bool(self.url):
            raise BenchError("--via http and --url go together: the address of a running server")
        if self.url and (self.mode or self.given or self.profile != "default"):
            raise BenchError("--profile, --mode and --set are for the engine; a running server (--url) has its own settings")

    @property
    def label(self) -> str:
        """The name of what is measured; ad-hoc settings are named by a hash, so that they never pass for the profile."""
        if self.via is Via.HTTP:
            return "server"
        given = blake2b(repr(sorted(self.given.items())).encode(), digest_size=3).hexdigest()
        return "-".join([self.profile, *([str(self.mode)] if self.mode else []), *(["set", given] if self.given else [])])

    @property
    def arguments(self) -> list[str]:
        """The options that give these conditions again."""
        mode = ["--mode", str(self.mode)] if self.mode else []
        profile = ["--profile", self.profile] if self.profile != "default" else []
        url = ["--via", "http", "--url", self.url] if self.url else []
        return [*profile, *mode, *(part for key, value in self.given.items() for part in ("--set", f"{key}={value}")), *url]

    def open(self, cache: Path) -> AbstractContextManager[EngineMemory | HttpMemory]:
        """The product. Raises ``BenchError`` or ``ConfigError``."""
        if self.via is Via.HTTP:
            return running(self.url, self.api_key)
        return in_process(self.mode or Mode.HYBRID, {**PROFILES[self.profile], **self.given}, cache)


def conditions(
    profile: str, mode: Mode | None, given: Sequence[str] | None, via: Via | None, url: str, api_key: str
) -> Conditions:
    """From the options of the command line. Raises ``BenchError``."""
    return Conditions(profile, mode, assignments(given or []), via or (Via.HTTP if url else Via.ENGINE), url, api_key)


def assignments(texts: Sequence[str]) -> dict[str, str]:
    """``KEY=VALUE`` texts as a mapping. Raises ``BenchError``."""
    pairs = [text.partition("=") for text in texts]
    if not all(key and equals for key, equals, _ in pairs):
        raise BenchError("--set wants KEY=VALUE, for example --set result_chars=0")
    return {key: value for key, _, value in pairs}


@contextmanager
def failures(command: str, *, resumable: bool = False) -> Iterator[None]:
    """What can't be run is said on stderr, with exit code 2; an interrupt with 130, as shells have it.

    ``resumable``: what an interrupted run has found is kept for the next.
    """
    try:
        yield
    except (BenchError, MemserverError) as error:
        typer.echo(f"{command}: {error}", err=True)
        raise typer.Exit(2) from error
    except KeyboardInterrupt as error:
        hint = "; the same command goes on where it stopped" if resumable else ""
        typer.echo(f"\n{command}: interrupted{hint}", err=True)
        raise typer.Exit(130) from error


def progress(what: str, known: int = 0) -> Progress:
    """Shows on stderr how many are done and how long the rest takes, one line that is written over on a terminal.

    ``known``: how many an earlier run had done, which took no time of this one.
    """
    started = monotonic()
    end = "\r" if sys.stderr.isatty() else "\n"

    def show(done: int, total: int) -> None:
        elapsed = monotonic() - started
        remaining = elapsed / (done - known) * (total - done)
        line = f"{done}/{total} {what}, {elapsed:.0f} s, about {remaining:.0f} s left"
        print(f"{line:<60}", file=sys.stderr, end=end if done < total else "\n", flush=True)

    return show


def counter(total: int, progress: Progress) -> Callable[[], None]:
    """To be called ``total`` times, from any thread; tells ``progress`` at each per cent, not at each of thousands."""
    step = max(1, total // 100)
    lock = Lock()
    done = 0

    def count() -> None:
        nonlocal done
        with lock:
            done += 1
            if done % step == 0 or done == total:
                progress(done, total)

    return count
