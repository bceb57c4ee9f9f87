"""The commands of operators: purge, export, import, backup, stats, freeze. All may run while servers do."""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memserver.config import Settings
from memserver.errors import BadRequest, ConfigError, Conflict, MemserverError
from memserver.methods import load_settings

if TYPE_CHECKING:
    from memserver.erasure import Counts

UNITS = {"d": "days", "h": "hours", "m": "minutes"}
FAILED, REFUSED = 1, 2  # exit codes

cli = typer.Typer()

DataDir = Annotated[Path | None, typer.Option(help="Folder of the database, if not MEMSERVER_DATA_DIR.")]


@cli.command()
def purge(
    user: Annotated[str | None, typer.Option(help="Delete all of this user's data.")] = None,
    older_than: Annotated[str | None, typer.Option(help="Delete Adds received longer ago, such as 30d, 12h or 45m.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Delete all users' data.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without, nothing is deleted.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Say what would be deleted, and delete it with --yes."""
    from memserver import erasure
    from memserver.migrations import transaction
    from memserver.upkeep import opened, stored_salt

    with _exits():
        if [user is None, older_than is None, not everything].count(False) != 1:
            raise ConfigError("give one of --user, --older-than and --all")
        before = None if older_than is None else datetime.now(UTC) - _duration(older_than)
        reason: erasure.Reason = "user" if user is not None else "older-than" if before else "all"
        path = _settings(data_dir).database
        with opened(path, "rw") as db:
            due = erasure.due(db, before, user)
            if not yes:
                typer.echo(f"would delete {_sums(due.values())}; nothing was deleted, --yes does it")
                return
            gone = []
            for user_id in due:  # a transaction each: an Add never waits for more than one
                with transaction(db, "IMMEDIATE"):
                    gone.append(erasure.erase(db, stored_salt(db), user_id, reason, before))
            typer.echo(f"deleted {_sums(gone)}")
            if erasure.quiet(db):
                erasure.rebuild(path)
            else:
                typer.echo("Adds come in: a server rebuilds the file, and so removes the last traces, after an hour without any")
            if not erasure.wipe_log(path, erasure.WRITE_SECONDS):
                typer.echo("the log still has old bytes, for readers keep it busy: purge again later", err=True)
                raise typer.Exit(FAILED)


@cli.command()
def export(
    user: Annotated[str | None, typer.Option(help="The user's id.")] = None,
    all_users: Annotated[bool, typer.Option("--all-users", help="Every user.")] = False,
    to: Annotated[Path | None, typer.Option(help="A new file, instead of the standard output.")] = None,
    data_dir: DataDir = None,
) -> None:
    """Write Adds as lines of JSON, one an Add, with all that was received."""
    from memserver import archive
    from memserver.upkeep import new_file, opened

    with _exits():
        if (user is None) is not all_users:
            raise ConfigError("give either --user or --all-users")
        with (
            opened(_settings(data_dir).database, "ro") as db,
            new_file(to) if to else nullcontext(sys.stdout.buffer) as file,
        ):
            lines = 0
            for user_id in archive.users(db) if user is None else [user]:
                for add in archive.adds(db, user_id):
                    file.write(archive.dump(add))
                    lines += 1
        typer.echo(f"exported {lines} Adds", err=True)


@cli.command("import")
def import_(file: Annotated[Path, typer.Argument(help="What export wrote.")], data_dir: DataDir = None) -> None:
    """Store exported Adds with the ids and times they had; those that are stored already are left alone."""
    from memserver import archive
    from memserver.engine import Engine

    with _exits():
        if not file.is_file():
            raise ConfigError(f"there is no file {file}: name one that memserver export wrote")
        engine, stored = Engine.open(_settings(data_dir)), Counter[bool]()
        try:
            with file.open("rb") as lines:
                for number, line in enumerate(lines, 1):
                    try:
                        add = archive.load(line)
                        stored[engine.add(add.request, add.received)] += 1
                    except (BadRequest, Conflict) as error:
                        raise ConfigError(f"line {number}: {error}; the {number - 1} lines before it are stored") from error
        finally:
            engine.close()
        typer.echo(f"imported {stored[True]} Adds, {stored[False]} were there before", err=True)


@cli.command()
def backup(file: Annotated[Path, typer.Argument(help="A new file.")], data_dir: DataDir = None) -> None:
    """Copy the database as it is at this moment, and check the copy."""
    from memserver import upkeep

    with _exits(), upkeep.opened(_settings(data_dir).database, "ro") as db:
        typer.echo(f"{upkeep.backup(db, file)} bytes copied to {file}; the copy is sound")


@cli.command()
def stats(
    as_json: Annotated[bool, typer.Option("--json", help="JSON, with the last deletions.")] = False, data_dir: DataDir = None
) -> None:
    """Say whether Adds come in, and what the database holds."""
    from memserver.upkeep import figures, opened

    with _exits():
        path = _settings(data_dir).database
        with opened(path, "ro") as db:
            found = figures(db, path)
    if as_json:
        typer.echo(json.dumps(asdict(found), indent=2))
        return
    recent = ", ".join(f"{count} in {minutes} min" for minutes, count in found.adds.items())
    state = "LIVE" if found.adds[5] else "quiet"
    typer.echo(f"{state}: Adds {recent}; the last one {found.last_add or 'never'} (Searches leave no trace here)")
    typer.echo(f"{found.users} users, {found.messages} messages, {found.chunks} chunks, {found.file_bytes} bytes")
    for write in found.latest:
        typer.echo(f"  {write['user']}  {write['at']}")


@cli.command()
def freeze(label: Annotated[str, typer.Option(help="What to call it, such as cycle-2-run-1.")]) -> None:
    """Write down code, settings, model and versions, in FROZEN.json and FROZEN.md of this folder."""
    from memserver import freeze as record

    with _exits():
        paths = record.write(record.freeze(_settings(None), label, os.environ), Path.cwd())
    typer.echo(f"written: {', '.join(path.name for path in paths)}")


def _settings(data_dir: Path | None) -> Settings:
    return load_settings(os.environ, {} if data_dir is None else {"data_dir": str(data_dir)})


def _duration(text: str) -> timedelta:
    match = re.fullmatch(r"(\d{1,5})([dhm])", text)
    if match is None:
        raise ConfigError("--older-than must be a number of days, hours or minutes, such as 30d, 12h or 45m")
    return timedelta(**{UNITS[match[2]]: int(match[1])})


def _sums(counts: Collection[Counts]) -> str:
    adds, messages = sum(count.adds for count in counts), sum(count.messages for count in counts)
    return f"{messages} messages in {adds} Adds of {len(counts)} users"


@contextmanager
def _exits() -> Iterator[None]:
    """Errors of ours as a line, and an exit code."""
    try:
        yield
    except MemserverError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(REFUSED if isinstance(error, ConfigError) else FAILED) from None
