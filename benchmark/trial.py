"""What every fault is tried with: a folder, a seed, and a server whose Searches show all that it has."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmark.author import Add, Author
from benchmark.server import Server, serving
from benchmark.traffic import Traffic

SHOW_ALL = {"RESULT_CHARS": "0", "RERANKERS": ""}


@dataclass(frozen=True, slots=True)
class Trial:
    """``rounds``: how often to do what has rounds; ``settings``: MEMSERVER_* variables without their prefix."""

    folder: Path
    seed: int
    rounds: int
    settings: Mapping[str, str]

    @property
    def author(self) -> Author:
        return Author(self.seed)

    def adds(self, users: int, each: int, first: int = 0) -> list[Add]:
        """The Adds number ``first`` to ``first + each`` of the first ``users`` users, users in turn."""
        names = [self.author.user(number) for number in range(users)]
        return [self.author.add(name, number) for number in range(first, first + each) for name in names]

    @contextmanager
    def server(self, settings: Mapping[str, str] | None = None, *, started: bool = True) -> Iterator[tuple[Server, Traffic]]:
        """A server of this trial, ``settings`` over its own, and a client of it."""
        effective = {**SHOW_ALL, **self.settings, **(settings or {})}
        with serving(self.folder, effective, started=started) as server, closing(Traffic(self.author, server.url)) as traffic:
            yield server, traffic


def integrity(database: Path) -> list[str]:
    """What SQLite finds wrong with the file."""
    with closing(sqlite3.connect(database)) as db:
        found = [str(row[0]) for row in db.execute("PRAGMA integrity_check")]
    return [] if found == ["ok"] else [f"PRAGMA integrity_check: {len(found)} faults"]
