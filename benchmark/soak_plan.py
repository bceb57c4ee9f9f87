"""How a soak is run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Plan:
    """``adds`` and ``searches``: in flight at once; ``users``: active at once; ``settings``: MEMSERVER_* without the prefix.

    ``size``: how large the scenarios are that have no duration, as a share of their full size.
    """

    folder: Path
    settings: Mapping[str, str]
    minutes: float = 10.0
    adds: int = 64
    searches: int = 32
    users: int = 40
    seed: int = 0
    size: float = 1.0
