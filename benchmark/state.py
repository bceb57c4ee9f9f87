"""What an interrupted run had found: outcomes, one JSON object a line, under a name that holds all that they depend on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from threading import Lock

from pydantic import TypeAdapter, ValidationError

from benchmark.summary import Outcome

_OUTCOME = TypeAdapter(Outcome)


class State:
    """The outcomes of one condition by question id, on disk until ``finish``. Thread-safe.

    ``condition`` must hold everything that could change an outcome: code, settings, data, seed.
    """

    def __init__(self, folder: Path, condition: Mapping[str, object]) -> None:
        key = blake2b(json.dumps(condition, sort_keys=True).encode(), digest_size=8).hexdigest()
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / f"unfinished-{key}.jsonl"
        self._lock = Lock()
        self.known = self._read()

    def add(self, outcome: Outcome) -> None:
        with self._lock, self._path.open("ab") as file:
            file.write(b"\n" + _OUTCOME.dump_json(outcome))  # the line break first: it parts it from a line that was broken off

    def finish(self) -> None:
        """Forget it all: a later run of the same condition measures anew."""
        self._path.unlink(missing_ok=True)

    def _read(self) -> dict[str, Outcome]:
        if not self._path.exists():
            return {}
        known = {}
        for line in self._path.read_bytes().splitlines():
            with suppress(ValidationError):  # the line that was being written when the run was killed
                outcome = _OUTCOME.validate_json(line)
                known[outcome.id] = outcome
        return known
