"""The bench's own test sets, ``benchmark/sets/<name>.jsonl``: one user's messages and the questions about them.

Every line is an object: a message (``id`` 1, 2, ..., ``session``, ``time`` in UTC, ``role``, ``content``) or a question (``id``,
``type``, ``question``, ``evidence``: the ids of all messages that answer it). They are read into a conversation as LoCoMo's are,
so that the same code plays and grades them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from benchmark.errors import BenchError
from benchmark.locomo_data import Conversation, Question, Session, Turn

FOLDER = Path(__file__).parent / "sets"
SETS: Mapping[str, Path] = {name: FOLDER / f"{name}.jsonl" for name in ("chinese", "code")}
"""The file of each set, by its name."""


class Said(BaseModel):
    """A message's line."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: int
    session: int
    time: datetime
    role: Literal["user", "assistant"]
    content: Annotated[str, Field(pattern=r"\S")]  # a blank one would not be stored, and the ids of those after it would shift


class Asked(BaseModel):
    """A question's line."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    type: str
    question: str
    evidence: Annotated[frozenset[int], Field(min_length=1)]


_LINE: TypeAdapter[Said | Asked] = TypeAdapter(Said | Asked)


def load_set(path: Path) -> Conversation:
    """The set in a file. Raises ``BenchError`` for a file that is no set, and for evidence that names no message of it."""
    lines = [_line(path, number, text) for number, text in enumerate(_texts(path), 1)]
    said = [line for line in lines if isinstance(line, Said)]
    asked = [line for line in lines if isinstance(line, Asked)]
    if missing := frozenset[int]().union(*(question.evidence for question in asked)) - {message.id for message in said}:
        raise BenchError(f"{path}: evidence names messages that are not there: {', '.join(map(str, sorted(missing)))}")
    return Conversation(
        index=0,
        id=path.stem,
        sessions=tuple(_session(list(messages)) for _, messages in groupby(said, lambda message: message.session)),
        questions=tuple(Question(one.id, one.type, one.question, "", frozenset(map(str, one.evidence))) for one in asked),
    )


def _session(messages: Sequence[Said]) -> Session:
    first = messages[0]
    turns = tuple(Turn(str(message.id), message.role, message.content) for message in messages)
    return Session(str(first.session), int(first.time.replace(tzinfo=UTC).timestamp()) * 1000, turns)


def _texts(path: Path) -> list[str]:
    try:
        with path.open(encoding="utf-8") as file:
            return list(file)
    except (OSError, ValueError) as error:
        raise BenchError(f"{path}: can't be read ({error}); give the path of a test set's file") from error


def _line(path: Path, number: int, text: str) -> Said | Asked:
    try:
        return _LINE.validate_json(text)
    except ValidationError as error:
        raise BenchError(f"{path}: line {number} is neither a message nor a question of a test set") from error
