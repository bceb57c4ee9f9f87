"""Who may import whom: what keeps the stages of the pipeline independent of each other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("embedders", "views", "retrievers", "fusers", "rerankers")
LEAVES = {"types", "errors", "text", "arrays", "ranking"}

# What each module may import of memserver; the package itself stands for its version.
MAY_IMPORT = {
    "memserver": set(),
    "types": set(),
    "errors": set(),
    "arrays": set(),
    "dates": set(),
    "text": {"types", "errors"},
    "traits": {"types", "text"},
    "preparing": {"config", "text", "traits", "types"},
    "ranking": {"types"},
    "config": {"types", "errors"},
    **{folder: LEAVES | {folder} for folder in FOLDERS},
    "methods": {"config", "types", "errors", *FOLDERS},
    "migrations": {"errors"},
    "ids": set[str](),
    "erasure": {"ids"},
    "store": {"types", "errors", "migrations", "erasure"},
    "upkeep": {"errors", "migrations", "ids", "erasure", "store"},
    "archive": {"types", "errors", "migrations", "store", "engine", "preparing"},
    "freeze": {"config", "embedders", "errors", "methods", "types", "memserver"},
    "commands": {"config", "errors", "methods", "engine", "migrations", "erasure", "upkeep", "archive", "freeze", "memserver"},
    "rounds": set[str](),
    "users": {"types", "errors", "arrays", "text"},
    "presenter": {"types", "text", "traits", "dates"},
    "engine": LEAVES
    | {"config", "dates", "methods", "preparing", "presenter", "store", "traits", "users", "memserver", *FOLDERS},
    "contract": {"types", "errors"},
    "openapi": set[str](),
    "guards": {"errors"},
    "logs": set[str](),
    "telemetry": {"engine", "errors", "ids", "logs", "memserver"},
    "app": {"engine", "contract", "config", "errors", "types", "openapi", "guards", "rounds", "telemetry", "memserver"},
    "preflight": {"errors"},
    "__main__": {"memserver", "config", "errors", "methods", "types"}
    | {"app", "commands", "engine", "logs", "preflight", "telemetry"},
}

# Libraries that have one place each: replacing one means changing one module.
ONLY_IN = {
    "fastapi": {"app", "__main__"},  # in __main__ as the name of a type
    "starlette": {"app"},
    "uvicorn": {"__main__"},
    "typer": {"__main__", "commands"},
    "structlog": {"logs"},
    "prometheus_client": {"telemetry"},
    "pydantic_settings": {"config", "methods"},
    "sqlite3": {"store", "migrations", "erasure", "upkeep", "archive"},
    "sqlite_utils": {"store", "migrations"},
    "torch": {"embedders"},
    "sentence_transformers": {"embedders", "rerankers"},
    "httpx": {"embedders", "preflight"},
    "faiss": {"retrievers"},
    "rank_bm25": {"retrievers"},
    "nltk": {"text"},
    "benchmark": set(),
}


def modules() -> list[Path]:
    return sorted((ROOT / "memserver").rglob("*.py"))


def unit(path: Path) -> str:
    """The module's name, or that of its folder: ``store``, ``embedders``."""
    first, *_ = path.relative_to(ROOT / "memserver").with_suffix("").parts
    return "memserver" if first == "__init__" else first


def imported(source: str) -> Iterator[str]:
    """Dotted names that ``source`` imports anywhere, names taken from a package counted as its modules."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def own_units(source: str) -> set[str]:
    """The units of memserver that ``source`` imports."""
    names = [name.split(".") for name in imported(source)]
    known = set(MAY_IMPORT)
    return {name[1] if len(name) > 1 and name[1] in known else "memserver" for name in names if name[0] == "memserver"}


def test_own_units_are_found_wherever_the_import_stands() -> None:
    source = "import memserver.store\nfrom memserver import app, __version__\ndef f():\n    from memserver.views.chunk import C"
    assert own_units(source) == {"store", "app", "memserver", "views"}


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_what_its_place_allows(path: Path) -> None:
    assert unit(path) in MAY_IMPORT, "say in MAY_IMPORT what the new module may import"
    assert own_units(path.read_text("utf-8")) - {unit(path)} <= MAY_IMPORT[unit(path)]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_library_with_one_place_is_imported_nowhere_else(path: Path) -> None:
    libraries = {name.split(".")[0] for name in imported(path.read_text("utf-8"))}
    assert {library for library in libraries if unit(path) not in ONLY_IN.get(library, {unit(path)})} == set()
