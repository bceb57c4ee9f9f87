"""LoCoMo's own file (``locomo10.json`` of snap-research/locomo), plain or gzipped, read into conversations.

A Turn holds what a memory system may see, in the shape the platform sends two-person talk: ``speaker_a`` speaks as ``user``,
``speaker_b`` as ``assistant``, and every text starts with its speaker's name. Where a turn shares an image, the data set's
caption of it (``blip_caption``) follows in brackets; its search words and link are left out, as is every summary and observation.
Turn ids, evidence, answers and categories stay with the bench.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmark.data import read_json
from benchmark.errors import BenchError

DATE = "%I:%M %p on %d %B, %Y"  # "1:56 pm on 8 May, 2023", taken as UTC

CATEGORIES: Mapping[int, str] = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
"""The paper's names (Maharana et al. 2024) of the numbers in the file."""

ADVERSARIAL = CATEGORIES[5]

_SESSION = re.compile(r"session_(\d+)")
_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")  # some strings hold several ids, some a stray colon or leading zeros


@dataclass(frozen=True, slots=True)
class Turn:
    """One message: its id in the data set (``D3:11``), role and labelled text."""

    id: str
    role: str
    content: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Session:
    """A dated part of a conversation. ``timestamp``: Unix milliseconds."""

    id: str
    timestamp: int
    turns: tuple[Turn, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Question:
    """A question, its gold answer ("" where there is none to give) and the turns that hold the evidence.

    ``unresolved`` counts pieces of evidence that name no turn of the conversation.
    """

    id: str
    type: str
    text: str = field(repr=False)
    answer: str = field(repr=False)
    gold: frozenset[str]
    unresolved: int = 0

    @property
    def scored(self) -> bool:
        """Whether it counts in the headline figures: all but adversarial ones, which have nothing to find."""
        return self.type != ADVERSARIAL


@dataclass(frozen=True, slots=True)
class Conversation:
    """Two people's sessions in order of time, and the questions about them. ``index``: its place in the file."""

    index: int
    id: str
    sessions: tuple[Session, ...] = field(repr=False)
    questions: tuple[Question, ...] = field(repr=False)

    @property
    def asked(self) -> tuple[Question, ...]:
        """The questions that have evidence; the metrics of the others are undefined."""
        return tuple(question for question in self.questions if question.gold)


def load_conversations(path: Path, limit: int | None = None) -> list[Conversation]:
    """The first ``limit`` conversations of the file, all by default. Raises ``BenchError`` for a file that isn't LoCoMo's."""
    items = read_json(path)
    if not isinstance(items, list) or not items:
        raise BenchError(f"{path}: not a LoCoMo file, which is a list of conversations")
    try:
        return [_conversation(index, item) for index, item in enumerate(items[:limit])]
    except (KeyError, TypeError, ValueError) as error:
        raise BenchError(f"{path}: not in LoCoMo's format ({type(error).__name__}: {error})") from error


def statistics(conversations: Sequence[Conversation]) -> dict[str, int]:
    """What the conversations hold together. ``unresolved_evidence``: pieces of evidence that name no turn."""
    questions = [question for conversation in conversations for question in conversation.questions]
    turns = [turn for conversation in conversations for session in conversation.sessions for turn in session.turns]
    return {
        "conversations": len(conversations),
        "questions": len(questions),
        "questions_without_evidence": sum(not question.gold for question in questions),
        "unresolved_evidence": sum(question.unresolved for question in questions),
        "sessions": sum(len(conversation.sessions) for conversation in conversations),
        "messages": len(turns),
        "characters": sum(len(turn.content) for turn in turns),
    }


def resolve(evidence: Sequence[str], known: Mapping[tuple[int, int], str]) -> tuple[frozenset[str], int]:
    """Evidence strings -> the ids of the turns they name, and how many pieces name none.

    ``known``: turn ids by (session, turn) number.
    """
    named = [(text, [(int(session), int(turn)) for session, turn in _EVIDENCE.findall(text)]) for text in evidence]
    numbers = {number for _, found in named for number in found}
    nameless = sum(not found for _, found in named)
    return frozenset(known[number] for number in numbers & known.keys()), nameless + len(numbers - known.keys())


def _conversation(index: int, item: Mapping[str, Any]) -> Conversation:
    talk = item["conversation"]
    roles = {talk["speaker_a"]: "user", talk["speaker_b"]: "assistant"}
    sessions = tuple(_session(name, talk, roles) for name in _session_names(talk))
    ids = [turn.id for session in sessions for turn in session.turns]
    known = {(int(match[1]), int(match[2])): id for id in ids if (match := _EVIDENCE.fullmatch(id))}
    if len(known) < len(ids) or not ids:
        raise ValueError(f"conversation {index} has no turns, or turns without a dia_id of their own")
    name = str(item.get("sample_id", index))
    questions = tuple(_question(f"{name}/{place}", qa, known) for place, qa in enumerate(item["qa"]))
    return Conversation(index, name, sessions, questions)


def _session_names(talk: Mapping[str, Any]) -> Iterator[str]:
    """In order of number, which is order of time; a date without a session is passed over."""
    numbers = sorted(int(match[1]) for name in talk if (match := _SESSION.fullmatch(name)))
    return (f"session_{number}" for number in numbers)


def _session(name: str, talk: Mapping[str, Any], roles: Mapping[str, str]) -> Session:
    moment = datetime.strptime(talk[f"{name}_date_time"], DATE).replace(tzinfo=UTC)
    turns = tuple(Turn(turn["dia_id"], roles[turn["speaker"]], _content(turn)) for turn in talk[name])
    return Session(name, int(moment.timestamp()) * 1000, turns)


def _content(turn: Mapping[str, Any]) -> str:
    caption = turn.get("blip_caption")
    return f"{turn['speaker']}: {turn['text']}" + (f" [shares {caption}]" if caption else "")


def _question(id: str, qa: Mapping[str, Any], known: Mapping[tuple[int, int], str]) -> Question:
    gold, unresolved = resolve(qa["evidence"], known)
    type = CATEGORIES[qa["category"]]
    answer = "" if type == ADVERSARIAL else str(qa["answer"])  # a few answers are years as numbers
    return Question(id, type, qa["question"], answer, gold, unresolved)
