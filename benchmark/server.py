"""A real ``memserver serve`` on loopback that a bench starts, stops, kills and starts again on the same data.

Servers are forked from a process that has their imports done, so that hundreds of starts take minutes and not hours.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import httpx
import psutil

from benchmark.errors import BenchError
from memserver.config import PREFIX

START_SECONDS = 120  # for loading a model on a busy machine
STOP_SECONDS = 90  # more than what the server gives its requests in flight

FORKING = get_context("forkserver")
FORKING.set_forkserver_preload(["memserver.__main__", "memserver.engine", "memserver.app", "memserver.telemetry"])


class Refused(BenchError):
    """A server that ended before it answered; ``said`` is what it wrote until then."""

    def __init__(self, exit_code: int | None, said: str) -> None:
        super().__init__(f"the server did not start (exit code {exit_code}): {said.strip()[-2000:]}")
        self.exit_code = exit_code
        self.said = said


class Server:
    """A server in ``folder``: its data in ``data``, what it writes in ``server.log``.

    ``settings`` are MEMSERVER_* variables without their prefix; those of the environment play no part.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self.data = folder / "data"
        self._log = folder / "server.log"
        self._settings = settings
        self._port = _free_port()
        self._process: ForkServerProcess | None = None
        self._probe = httpx.Client(trust_env=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def database(self) -> Path:
        return self.data / "memserver.db"

    @property
    def pid(self) -> int:
        """Of the process that runs, or of the supervisor of its workers."""
        assert self._process, "the server runs"
        return int(self._process.pid or 0)

    def start(self, **changes: str) -> None:
        """Returns once it answers; ``changes`` are settings for this time. Raises ``Refused`` if it ends before that."""
        settings = {"LOG_LEVEL": "warning", "DATA_DIR": str(self.data), **self._settings, **changes}
        environ = {PREFIX + name: value for name, value in settings.items()}
        written = len(self.log())
        self._process = FORKING.Process(target=_serve, args=(environ, ["--port", str(self._port)], self._log))
        self._process.start()
        deadline = time.monotonic() + START_SECONDS
        while self._process.is_alive():
            if time.monotonic() > deadline:
                self.kill()
                raise BenchError(f"the server did not answer within {START_SECONDS} seconds; see {self._log}")
            if self._answers():
                return
            time.sleep(0.02)
        raise Refused(self._process.exitcode, self.log()[written:])

    def kill(self) -> None:
        """SIGKILL, its workers too."""
        for process in self._processes():
            process.kill()
        if self._process is not None:
            self._process.join()

    def terminate(self) -> None:
        """SIGTERM; ``ended`` tells how it took it."""
        assert self._process, "the server runs"
        self._process.terminate()

    def ended(self) -> int | None:
        """Wait for the end; the exit code, negative for a signal, None if it did not come to it and was killed."""
        assert self._process, "the server runs"
        self._process.join(STOP_SECONDS)
        if self._process.is_alive():
            self.kill()
            return None
        return self._process.exitcode

    def stop(self) -> int | None:
        """SIGTERM and the exit code, see ``ended``."""
        self.terminate()
        return self.ended()

    def gone(self) -> list[str]:
        """What to say of a server that should run and does not; nothing of one that does."""
        if self._process is not None and self._process.is_alive():
            return []
        code = self._process.exitcode if self._process is not None else None
        return [f"the server ended by itself, exit code {code}: {self.log().strip()[-2000:]}"]

    def log(self) -> str:
        """All that it wrote, over all starts."""
        return self._log.read_text("utf-8", "replace") if self._log.exists() else ""

    def resident(self) -> int:
        """Resident memory of its processes, in bytes; pages that they share count in each."""
        return sum(_resident(process) for process in self._processes())

    def close(self) -> None:
        """Kill it, if it still runs."""
        self.kill()
        self._probe.close()

    def _answers(self) -> bool:
        try:
            return self._probe.get(f"{self.url}/health").is_success
        except httpx.TransportError:
            return False

    def _processes(self) -> list[psutil.Process]:
        if self._process is None or not self._process.is_alive():
            return []
        try:
            first = psutil.Process(self._process.pid)
            return [first, *first.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []


@contextmanager
def serving(folder: Path, settings: Mapping[str, str], *, started: bool = True) -> Iterator[Server]:
    """A server in ``folder``, started unless it is not to be, and killed at the end of the block."""
    folder.mkdir(parents=True, exist_ok=True)
    server = Server(folder, settings)
    try:
        if started:
            server.start()
        yield server
    finally:
        server.close()


def _serve(environ: Mapping[str, str], arguments: Sequence[str], log: Path) -> None:
    """In the new process: the command line's own way to serve, with its output in ``log``."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    os.dup2(sys.stdin.fileno(), 0)  # multiprocessing opens another one, which uvicorn's workers would not inherit
    sys.stdin = os.fdopen(0)
    for name in [name for name in os.environ if name.upper().startswith(PREFIX)]:
        del os.environ[name]
    os.environ |= environ
    from memserver.__main__ import cli

    cli(["serve", *arguments], prog_name="memserver")


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])
