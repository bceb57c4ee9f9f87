"""The disk is full, or another process keeps the database to itself."""

from __future__ import annotations

import resource
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmark.outcome import Outcome
from benchmark.server import Server
from benchmark.trial import Trial, integrity

DISK_BYTES = 6 * 2**20
USERS = 6
FILLING = 300  # Adds of a user at most, several times what the disk holds
WRITERS = 4


@dataclass(frozen=True, slots=True)
class Disk:
    """A small one. ``fill`` leaves little room to the server, ``free`` gives it back."""

    name: str
    fill: Callable[[Server], object]
    free: Callable[[Server], object]


def disk_full(trial: Trial) -> Outcome:
    """Add until the disk is full, go on asking, free some space, send all again to the very same process."""
    refused = []
    with trial.server(started=False) as (server, traffic), _small_disk(server.data) as disk:
        server.start()
        disk.fill(server)
        for add in trial.adds(USERS, FILLING):
            answer = traffic.add(add, expected=(200, 503))
            if answer is not None and answer.status_code == 503:
                refused.append(add)
            if len(refused) > USERS:
                break
        stored = len(traffic.acknowledged)
        if not stored or not refused:
            traffic.note("the disk did not get full, or was so from the start")
        traffic.problems += traffic.audit()  # Searches go on
        disk.free(server)
        for add in refused:
            traffic.add(add)
        traffic.problems += integrity(server.database) + traffic.audit()
    return Outcome(f"{disk.name}: {stored} Adds stored, {len(refused)} refused and stored once there was room", traffic.problems)


@contextmanager
def _small_disk(folder: Path) -> Iterator[Disk]:
    """A file system of its own in ``folder``; where only root could make one, a limit on what the server may write."""
    folder.mkdir()
    if not _mounted(folder):
        yield Disk("a limit on the size of files", lambda server: _limit(server, DISK_BYTES // 4), _limit)
        return
    ballast = folder / "ballast"
    try:
        yield Disk("a full tmpfs", lambda _: ballast.write_bytes(bytes(DISK_BYTES // 2)), lambda _: ballast.unlink())
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def _mounted(folder: Path) -> bool:
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
    try:
        return subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def _limit(server: Server, size: int = resource.RLIM_INFINITY) -> None:
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def locked(trial: Trial) -> Outcome:
    """Another process holds the write lock for longer than anyone waits."""
    stored, refused = trial.adds(WRITERS, 1), trial.adds(WRITERS, 1, first=1)
    with trial.server() as (server, traffic):
        for add in stored:
            traffic.add(add)
        with closing(sqlite3.connect(server.database, isolation_level=None)) as other, ThreadPoolExecutor(WRITERS) as pool:
            other.execute("BEGIN IMMEDIATE")
            answers = [pool.submit(traffic.add, add, (503,)) for add in refused]
            traffic.problems += traffic.audit()
            for answer in answers:
                answer.result()
            other.execute("ROLLBACK")
        for add in refused:
            traffic.add(add)
        traffic.problems += integrity(server.database) + traffic.audit()
    return Outcome(f"{len(refused)} Adds refused, searches answered meanwhile, all stored afterwards", traffic.problems)
