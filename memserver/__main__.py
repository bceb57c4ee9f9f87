"""The ``memserver`` command."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
import uvicorn

from memserver import __version__
from memserver.config import Settings, shown
from memserver.errors import ConfigError
from memserver.methods import Variable, load_settings, variables

if TYPE_CHECKING:
    from fastapi import FastAPI

    from memserver.engine import Engine

SWITCH_SECONDS = 0.001  # a fifth of the default: how long each busy thread may keep the interpreter from answering /health
KEEP_ALIVE_SECONDS = 75  # longer than a client's pause between two requests, so that it rarely meets a closing connection
WORKER_SECONDS = 60  # until a worker that says nothing is replaced; importing its libraries on a cold disk takes a while
SHUTDOWN_SECONDS = 30  # for requests in flight; one that is cut off was not acknowledged and will be sent again

cli = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)


@cli.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="TCP port.")] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Folder of the database.")] = None,
    workers: Annotated[int | None, typer.Option(help="Server processes.")] = None,
) -> None:
    """Start the server. Flags win over the MEMSERVER_* variables."""
    flags = {"HOST": host, "PORT": port, "DATA_DIR": data_dir, "WORKERS": workers}
    # Worker processes start anew and know only the environment.
    os.environ |= {f"MEMSERVER_{name}": str(value) for name, value in flags.items() if value is not None}
    settings, app = _checked()
    uvicorn.run(
        app or "memserver.__main__:application",
        factory=app is None,
        workers=settings.workers,
        host=settings.host,
        port=settings.port,
        log_level=settings.log_level,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        timeout_worker_healthcheck=WORKER_SECONDS,
    )


@cli.command("settings")
def show_settings(
    as_json: Annotated[bool, typer.Option("--json", help="A JSON list instead of a table.")] = False,
) -> None:
    """Print the effective settings; keys stay hidden."""
    rows = variables(_settings())
    typer.echo(json.dumps([asdict(row) for row in rows], indent=2) if as_json else _table(rows))


def application() -> FastAPI:
    """The server as the MEMSERVER_* variables describe it: what each worker process runs, and any ASGI server can."""
    return _app(*_open())


def main() -> None:
    cli(prog_name="memserver")


def _settings() -> Settings:
    try:
        return load_settings(os.environ)
    except ConfigError as error:
        raise _refused(error) from None


def _checked() -> tuple[Settings, FastAPI | None]:
    """The settings, and the server to run; None where workers are to make their own.

    The engine is opened even then: a start that is refused must not be tried by the workers again and again.
    """
    settings, engine = _open()
    typer.echo(_banner(settings, engine.describe()), err=True)
    if settings.workers == 1:
        return settings, _app(settings, engine)
    engine.close()
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // settings.workers)))  # torch's threads
    return settings, None


def _open() -> tuple[Settings, Engine]:
    from memserver.engine import Engine  # here, so that the other commands start without sqlite and FastAPI

    settings = _settings()
    sys.setswitchinterval(SWITCH_SECONDS)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("memserver").setLevel(settings.log_level.upper())
    try:
        return settings, Engine.open(settings)
    except ConfigError as error:
        raise _refused(error) from None


def _app(settings: Settings, engine: Engine) -> FastAPI:
    from memserver.app import create_app

    return create_app(
        engine,
        api_keys=[key.get_secret_value() for key in settings.api_keys],
        max_body_bytes=settings.max_body_mb * 2**20,
        max_in_flight=settings.max_in_flight,
    )


def _refused(error: ConfigError) -> SystemExit:
    typer.echo(f"memserver does not start:\n{error}", err=True)
    return SystemExit(2)


def _banner(settings: Settings, engine: dict[str, object]) -> str:
    keys = len(settings.api_keys)
    lines = {
        "embedder": f"{settings.embedder} ({engine['model']}, {engine['dimension']} dimensions)",
        "legs": shown(settings.legs),
        "data": str(settings.data_dir.resolve()),
        "access": f"with a key, {keys} accepted" if keys else "OPEN to all who reach this address; MEMSERVER_API_KEYS closes it",
        "workers": str(settings.workers),
    }
    return f"memserver {__version__}\n" + "\n".join(f"  {name:9}{value}" for name, value in lines.items())


def _table(rows: Iterable[Variable]) -> str:
    """Aligned columns; a default that is in effect is not printed twice."""
    cells = [("NAME", "VALUE", "DEFAULT", "MEANING")]
    cells += [(row.name, row.value, "=" if row.value == row.default else row.default, row.meaning) for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in cells)


if __name__ == "__main__":
    main()
