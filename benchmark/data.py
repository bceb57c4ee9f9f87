"""LongMemEval's own files, plain or gzipped, read into cases.

A Turn holds what a memory system may see. ``answer``, ``has_answer`` and the like are not read at all, gold ids and session ids
stay with the bench.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmark.errors import BenchError

DATE = "%Y/%m/%d (%a) %H:%M"  # "2023/05/20 (Sat) 02:21", taken as UTC


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a session, the data set's own text."""

    role: str
    content: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Session:
    """A dated conversation. ``timestamp``: Unix milliseconds."""

    id: str
    timestamp: int
    turns: tuple[Turn, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Case:
    """A question, its haystack of sessions in the file's order and the ids of the gold ones. ``index``: its place in the file."""

    index: int
    id: str
    type: str
    question: str = field(repr=False)
    sessions: tuple[Session, ...] = field(repr=False)
    gold: frozenset[str]

    @property
    def abstention(self) -> bool:
        """Whether the haystack holds no answer; the data set's own scorer leaves these questions out."""
        return self.id.endswith("_abs")


def load_cases(path: Path, limit: int | None = None) -> list[Case]:
    """The first ``limit`` cases of a data set file, all by default. Raises ``BenchError`` for a file that isn't one."""
    items = read_json(path)
    if not isinstance(items, list) or not items:
        raise BenchError(f"{path}: not a LongMemEval file, which is a list of cases")
    return [_case(path, index, item) for index, item in enumerate(items[:limit])]


def read_json(path: Path) -> Any:
    """The JSON value of a plain or gzipped file. Raises ``BenchError``."""
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8") as file:
            return json.load(file)
    except OSError as error:
        raise BenchError(f"{path}: can't be read ({error.strerror or error}); give the path of the data set's file") from error
    except (ValueError, EOFError) as error:
        raise BenchError(f"{path}: not a complete JSON file; fetch it again") from error


def _case(path: Path, index: int, item: Mapping[str, Any]) -> Case:
    try:
        haystack = zip(item["haystack_session_ids"], item["haystack_dates"], item["haystack_sessions"], strict=True)
        case = Case(
            index=index,
            id=item["question_id"],
            type=item["question_type"],
            question=item["question"],
            sessions=tuple(
                Session(id, _milliseconds(date), tuple(Turn(turn["role"], turn["content"]) for turn in turns))
                for id, date, turns in haystack
            ),
            gold=frozenset(item["answer_session_ids"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise BenchError(f"{path}: case {index} is not in LongMemEval's format ({type(error).__name__}: {error})") from error
    if not case.gold <= {session.id for session in case.sessions} or not case.gold:
        raise BenchError(f"{path}: case {index} has no gold session in its haystack; its metrics are undefined")
    return case


def _milliseconds(date: str) -> int:
    return int(datetime.strptime(date, DATE).replace(tzinfo=UTC).timestamp()) * 1000
