"""``python -m benchmark.report RESULT...``: results side by side, as a Markdown table and as one HTML page.

Systems are compared on the questions that all of them have, so that no row is easier than another.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from benchmark.command import failures
from benchmark.errors import BenchError
from benchmark.page import heading, page
from benchmark.standings import Standing, markdown, standings
from benchmark.systems import System, read_system

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    results: Annotated[list[Path], typer.Argument(help="Our result files, and peers' files to set beside them.")],
    html: Annotated[Path | None, typer.Option(help="Write the page to this file.")] = None,
    markdown_: Annotated[Path | None, typer.Option("--markdown", help="Write the tables there instead of to stdout.")] = None,
) -> None:
    """Set results side by side on the questions that all of them have."""
    with failures("report"):
        groups = _groups([read_system(path) for path in results])
        tables = "\n".join(f"### {heading(group)}\n\n{markdown(group)}\n" for group in groups)
        if html:
            _write(html, page(groups))
        if markdown_:
            _write(markdown_, tables)
        else:
            typer.echo(tables)


def _groups(systems: list[System]) -> list[list[Standing]]:
    """The standings of each benchmark, in the order in which they were named."""
    names = dict.fromkeys(system.benchmark for system in systems)
    return [standings([system for system in systems if system.benchmark == name]) for name in names]


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BenchError(f"{path}: can't be written ({error.strerror}); give a path in a folder that exists") from error


if __name__ == "__main__":
    app()
