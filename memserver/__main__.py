"""The ``memserver`` command."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
import uvicorn

from memserver import __version__, commands, logs
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

logger = logging.getLogger("memserver")  # as a command this module is called __main__

cli = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)
cli.add_typer(commands.cli)


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
        log_config=None,
        log_level=settings.log_level,
        access_log=False,  # the line that telemetry logs for each request says more, and no path
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


@cli.command("preflight")
def run_preflight(
    url: Annotated[str, typer.Argument(help="Where the server is, like http://127.0.0.1:8000.")],
    key: Annotated[str, typer.Option(envvar="PREFLIGHT_KEY", help="The server's key.", show_envvar=True)] = "",
    add_path: Annotated[str, typer.Option(help="Path of Add.")] = "/add",
    search_path: Annotated[str, typer.Option(help="Path of Search.")] = "/search",
    health_path: Annotated[str, typer.Option(help="Path of health.")] = "/health",
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds that an answer may stand still.")] = 60.0,
    text_only: Annotated[bool, typer.Option("--text-only", help="Leave out images.")] = False,
    skip_slow: Annotated[bool, typer.Option("--skip-slow", help="Leave out the body of 42 MiB.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False,
) -> None:
    """Check any server against the contract; exits with 1 if a check fails, with 2 if the server can't be reached."""
    from memserver.preflight.client import Target
    from memserver.preflight.probe import Options
    from memserver.preflight.report import preflight

    target = Target(url, key, add_path, search_path, health_path, timeout)
    options = Options(text_only=text_only, skip_slow=skip_slow)
    raise typer.Exit(preflight(target, options, as_json, write=typer.echo, complain=partial(typer.echo, err=True)))


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
    facts = _facts(settings, engine.describe())
    if sys.stderr.isatty():
        typer.echo("\n".join([f"memserver {__version__}", *(f"  {name:9}{value}" for name, value in facts.items())]), err=True)
    else:
        logger.info("memserver %s", __version__, extra=facts)
    if settings.workers == 1:
        return settings, _app(settings, engine)
    engine.close()
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // settings.workers)))  # torch's threads
    return settings, None


def _open() -> tuple[Settings, Engine]:
    from memserver.engine import Engine  # here, so that the other commands start without sqlite and FastAPI

    settings = _settings()
    sys.setswitchinterval(SWITCH_SECONDS)
    logs.configure(settings.log_level)
    try:
        return settings, Engine.open(settings)
    except ConfigError as error:
        raise _refused(error) from None


def _app(settings: Settings, engine: Engine) -> FastAPI:
    from memserver.app import create_app
    from memserver.telemetry import Telemetry

    telemetry = Telemetry(engine.stats, engine.salt)
    if settings.metrics_port:
        telemetry.listen(settings.host, range(settings.metrics_port, settings.metrics_port + settings.workers))
    return create_app(
        engine,
        api_keys=[key.get_secret_value() for key in settings.api_keys],
        max_body_bytes=settings.max_body_mb * 2**20,
        max_in_flight=settings.max_in_flight,
        telemetry=telemetry,
        serve_metrics=not settings.metrics_port and settings.workers == 1,  # a scrape of one worker of several would tell little
    )


def _refused(error: ConfigError) -> SystemExit:
    typer.echo(f"memserver does not start:\n{error}", err=True)
    return SystemExit(2)


def _facts(settings: Settings, engine: dict[str, object]) -> dict[str, str]:
    """What the start says, by name."""
    keys = len(settings.api_keys)
    return {
        "embedder": f"{settings.embedder} ({engine['model']}, {engine['dimension']} dimensions)",
        "legs": shown(settings.legs),
        "data": str(settings.data_dir.resolve()),
        "access": f"with a key, {keys} accepted" if keys else "OPEN to all who reach this address; MEMSERVER_API_KEYS closes it",
        "workers": str(settings.workers),
    }


def _table(rows: Iterable[Variable]) -> str:
    """Aligned columns; a default that is in effect is not printed twice."""
    cells = [("NAME", "VALUE", "DEFAULT", "MEANING")]
    cells += [(row.name, row.value, "=" if row.value == row.default else row.default, row.meaning) for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in cells)


if __name__ == "__main__":
    main()
