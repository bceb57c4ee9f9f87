"""LongMemEval's own files, plain or gzipped, read into cases.

A Turn holds what a memory system may see. Ids, gold and the answer stay with the bench, which looks at them after the search.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmark.errors import BenchError

HUB = "xiaowu0162/longmemeval-cleaned"  # the data set's home on the Hugging Face hub
FILES = ("longmemeval_s_cleaned.json", "longmemeval_m_cleaned.json", "longmemeval_oracle.json")
DATE = "%Y/%m/%d (%a) %H:%M"  # "2023/05/20 (Sat) 02:21", taken as UTC


Place = tuple[int, int]
"""A turn of a case: the place of its session in the haystack and its own place in the session, both from 0."""


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
    """A question, its haystack of sessions in the file's order and the ids of the gold ones. ``index``: its place in the file.

    ``evidence``: the turns that are marked ``has_answer``, none in a file (or a case) without such marks.
    """

    index: int
    id: str
    type: str
    question: str = field(repr=False)
    sessions: tuple[Session, ...] = field(repr=False)
    gold: frozenset[str]
    evidence: frozenset[Place] = frozenset()
    answer: str = field(default="", repr=False)

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


def statistics(cases: Sequence[Case]) -> dict[str, int]:
    """What the cases hold together: a wrong corpus shows here, before any ranking is looked at."""
    turns = [turn for case in cases for session in case.sessions for turn in session.turns]
    return {
        "questions": len(cases),
        "sessions": sum(len(case.sessions) for case in cases),
        "messages": len(turns),
        "characters": sum(len(turn.content) for turn in turns),
    }


def download(path: Path) -> None:
    """Fetch the data set's file of that name into that folder, unless it is there. Raises ``BenchError`` if that fails."""
    if path.exists():
        return
    if path.name not in FILES:
        raise BenchError(f"{path}: no file of {HUB} has that name; there are {', '.join(FILES)}")
    from huggingface_hub import hf_hub_download

    try:
        hf_hub_download(HUB, path.name, repo_type="dataset", local_dir=path.parent)
    except Exception as error:  # what it raises depends on the network, the proxy and the hub
        raise BenchError(
            f"{path.name} can't be fetched from the Hugging Face hub ({type(error).__name__}). Where there is no network, run\n"
            f"  hf download {HUB} {path.name} --repo-type dataset --local-dir .\n"
            f"elsewhere, copy the file to {path} and run this command again."
        ) from error


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
            evidence=frozenset(
                (place, position)
                for place, turns in enumerate(item["haystack_sessions"])
                for position, turn in enumerate(turns)
                if turn.get("has_answer")
            ),
            answer=str(item.get("answer", "")),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise BenchError(f"{path}: case {index} is not in LongMemEval's format ({type(error).__name__}: {error})") from error
    if not case.gold <= {session.id for session in case.sessions} or not case.gold:
        raise BenchError(f"{path}: case {index} has no gold session in its haystack; its metrics are undefined")
    return case


def _milliseconds(date: str) -> int:
    return int(datetime.strptime(date, DATE).replace(tzinfo=UTC).timestamp()) * 1000
