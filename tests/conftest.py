"""What all tests share: no setting of the machine reaches them, no test depends on how fast it runs, and real servers."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from hypothesis import settings

ROOT = Path(__file__).parent.parent

Serve = Callable[..., str]
"""Starts ``memserver serve`` with these variables (without their prefix) and gives its base URL once it answers."""

settings.register_profile("memserver", deadline=None)
settings.load_profile("memserver")


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.upper().startswith("MEMSERVER_"):
            monkeypatch.delenv(name)


def memserver(*args: str, **variables: str) -> subprocess.Popen[str]:
    """The command as a process of its own, its two outputs in one pipe.

    Its log has warnings alone unless asked otherwise: nobody reads the pipe before the end, and a full one stops the server.
    """
    environ = os.environ | {f"MEMSERVER_{name}": value for name, value in ({"LOG_LEVEL": "warning"} | variables).items()}
    command = [sys.executable, "-m", "memserver", *args]
    return subprocess.Popen(command, cwd=ROOT, env=environ, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    processes = []

    def start(**variables: str) -> str:
        port = free_port()
        process = memserver("serve", "--port", port, **{"DATA_DIR": str(tmp_path), "EMBEDDER": "hashing"} | variables)
        processes.append(process)
        return answering(port, process)

    yield start
    for process in processes:
        process.terminate()
        process.communicate()


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return str(free.getsockname()[1])


def answering(port: str, process: subprocess.Popen[str]) -> str:
    """The server's base URL, once it answers there."""
    url = f"http://127.0.0.1:{port}"
    while process.poll() is None:
        try:
            httpx.get(f"{url}/health").raise_for_status()
        except httpx.TransportError:
            time.sleep(0.1)
        else:
            return url
    raise AssertionError(process.communicate()[0])
