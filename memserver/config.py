"""Settings: every MEMSERVER_* variable with its unit, its default and its meaning.

The tunables of the methods (k1 of BM25, the model of MiniLM, ...) stand in the methods' own files and are read by
``methods.load_settings``, which also checks the names of the methods chosen here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, SecretStr
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

PREFIX = "MEMSERVER_"

Tunable = str | int | float | bool
Options = Mapping[str, Mapping[str, Tunable]]
"""Tunables of every registered method, by method and field."""


@dataclass(frozen=True, slots=True)
class Leg:
    """One retriever over one view; its ranked list counts with ``weight`` (> 0, relative to the other legs)."""

    retriever: str
    view: str
    weight: float

    def __str__(self) -> str:
        return f"{self.retriever}/{self.view}={self.weight:g}"


_LEG = re.compile(r"(\w+)/(\w+)=((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")
MAX_WEIGHT = 1e6


def parse_legs(value: object) -> object:
    """``"bm25/chunk=0.3, vectors/chunk=0.7"`` -> Legs. Raises ``ValueError``."""
    if not isinstance(value, str):
        return value
    found = [_LEG.fullmatch(item.strip()) for item in value.split(",")]
    legs = tuple(Leg(match[1], match[2], float(match[3])) for match in found if match)
    if len(legs) < len(found) or not all(1 / MAX_WEIGHT <= leg.weight <= MAX_WEIGHT for leg in legs):
        raise ValueError("must be retriever/view=weight, separated by commas, weights from 1e-6 to 1e6")
    if len({(leg.retriever, leg.view) for leg in legs}) < len(legs):
        raise ValueError("must name each retriever/view once")
    return legs


def split_commas(value: object) -> object:
    """``"a, b"`` -> ``("a", "b")``; a blank string is the empty tuple. Raises ``ValueError`` for an empty item."""
    if not isinstance(value, str):
        return value
    items = tuple(item.strip() for item in value.split(",")) if value.strip() else ()
    if not all(items):
        raise ValueError("must have no empty item between its commas")
    return items


class Settings(BaseSettings):
    """All that can be set. Frozen; read by ``methods.load_settings``."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="forbid")

    host: str = Field("127.0.0.1", min_length=1, description="address to listen on")
    port: int = Field(8000, ge=0, le=65535, description="TCP port, 0 for any free one")
    data_dir: Path = Field(Path("./data"), description="folder of the database; created if absent")
    workers: int = Field(1, ge=1, description="server processes over the one database; each loads the model")
    api_keys: Annotated[tuple[SecretStr, ...], NoDecode, BeforeValidator(split_commas)] = Field(
        (), description="accepted keys, separated by commas; none: open to everyone"
    )
    log_level: Literal["critical", "error", "warning", "info", "debug"] = Field("info", description="least severe line logged")
    metrics_port: int = Field(
        0, ge=0, le=65535, description="TCP port of /metrics without a key, each worker the next; 0: on the main port, with key"
    )
    max_body_mb: int = Field(42, ge=1, description="largest request body, MiB")
    max_in_flight: int = Field(256, ge=1, description="requests answered at once by a worker; more get 429")
    retention_days: int = Field(
        0, ge=0, le=36_500, description="Adds received longer ago are deleted, looked for every hour, days; 0: never"
    )

    embedder: str = Field("minilm", description="embedder of messages and queries")
    embed_queue: int = Field(4096, ge=1, description="texts that may wait for the embedder; more make Adds wait")
    analyzer: Literal["words", "ascii"] = Field("words", description="how text becomes terms; fixed when a database is made")
    index_dates: bool = Field(True, description="index a message with its date in words; fixed when a database is made")
    context_chars: int = Field(
        300, ge=0, description="a message and the one before it, both at most so many characters, are embedded together; 0: never"
    )
    cut_chars: int = Field(
        7500, ge=0, description="a message of so many characters goes on in the next of the same role and label; 0: never"
    )
    legs: Annotated[tuple[Leg, ...], NoDecode, BeforeValidator(parse_legs)] = Field(
        (Leg("bm25", "chunk", 0.25), Leg("bm25", "context", 0.35), Leg("bm25", "session", 0.3), Leg("vectors", "chunk", 0.8)),
        description="retriever/view=weight, separated by commas",
    )
    fuser: str = Field("rrf_scored", description="how the legs' lists become one")
    rerankers: Annotated[tuple[str, ...], NoDecode, BeforeValidator(split_commas)] = Field(
        ("speakers", "answers", "periods", "sessions", "updates"),
        description="rerankers in their order, separated by commas; may be empty",
    )
    advice_boost: float = Field(
        2.0, gt=0, le=MAX_WEIGHT, description="factor of the vector legs' weights where a query asks for advice"
    )
    depth: int = Field(1000, ge=1, description="candidates taken from each leg, messages")

    content: Literal["dated", "raw"] = Field("dated", description="what a hit shows: [date] role: text, or the text alone")
    resolve_dates: bool = Field(True, description="add the day to relative dates in hits: yesterday (2023-05-07)")
    fold_neighbours: bool = Field(
        True, description="show a hit's neighbours with it where room is left and they are no hits themselves"
    )
    result_chars: int = Field(50_000, ge=0, description="length of all hits of a Search together, characters; 0: no limit")
    result_chars_choice: int = Field(8_000, ge=0, description="the same for a Search with options, characters; 0: no limit")
    index_memory_mb: int = Field(2048, ge=1, description="indexes held in memory by a worker, MiB; the oldest are dropped")

    options: Options = Field({}, description="tunables of the methods")

    @property
    def database(self) -> Path:
        """The one file that holds all memories."""
        return self.data_dir / "memserver.db"

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what it is given: ``load_settings`` reads the variables, so that the bench and tests can bring their own."""
        return (init_settings,)


def shown(value: object) -> str:
    """A value as one would set it; keys as their number only."""
    if isinstance(value, tuple):
        if value and isinstance(value[0], SecretStr):
            return f"({len(value)} hidden)"
        return ", ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
