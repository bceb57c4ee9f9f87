"""One conversation through Add and Search, and what its questions came to.

As for LongMemEval (``benchmark.play``): the product sees opaque names, labelled texts, roles, dates and questions, nothing else.
Its documented ``hit_id`` tells which turn a hit is, and sessions are ranked by the one ``rank_sessions``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from benchmark.client import Memory
from benchmark.evidence import CHARACTERS, JOINT, TOKENS, containment, within_characters, within_tokens
from benchmark.locomo_data import Conversation, Question, Session
from benchmark.metrics import gold_ranks, ndcg_at_k, recall_any_at_k, recall_at_k, reciprocal_rank
from benchmark.play import MESSAGES_PER_ADD, PLATFORM, opaque, rank_sessions
from benchmark.results import RANKED
from benchmark.results import Question as Row
from memserver.preparing import hit_id

DEPTHS = (5, 10, 20, 50, 100)

Message = dict[str, str | int]
Add = tuple[int, list[Message]]
"""The place of a session in its conversation, and the messages of one Add."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a question's Search returned: turns and sessions by their ids, best first; ``contents`` in the order of the turns."""

    question: Question
    gold_sessions: frozenset[str]
    turns: tuple[str, ...]
    sessions: tuple[str, ...]
    contents: tuple[str, ...] = field(repr=False)

    def row(self) -> Row:
        """Its row in the result file: metrics of turns by their plain names, those of sessions as ``session_*``."""
        gold = self.question.gold
        return Row(
            id=self.question.id,
            type=self.question.type,
            scored=self.question.scored,
            gold=sorted(self.gold_sessions),
            ranked=list(self.sessions[:RANKED]),
            gold_ranks=gold_ranks(self.sessions, self.gold_sessions),
            turn={"gold": len(gold), "gold_ranks": gold_ranks(self.turns, gold)},
            metrics=_levels("", self.turns, gold) | _levels("session_", self.sessions, self.gold_sessions) | self._seen(),
        )

    def _seen(self) -> dict[str, float]:
        """What an answer model with a budget gets to see."""
        gold = self.question.gold
        seen = within_characters(self.contents, CHARACTERS)
        contained = containment(self.question.answer, JOINT.join(self.contents[:seen]))
        return {
            f"evidence@{CHARACTERS}chars": recall_at_k(self.turns, gold, seen),
            f"evidence@{TOKENS}tokens": recall_at_k(self.turns, gold, within_tokens(self.contents, TOKENS)),
            **({} if contained is None else {"containment": contained}),
        }


def requests(conversation: Conversation) -> int:
    """How many Adds and Searches ``play`` sends."""
    return len(_adds(conversation)) + len(conversation.asked)


def play(conversation: Conversation, memory: Memory, seed: int = 0) -> list[Outcome]:
    """All Adds in order of time, then one Search for each question that has evidence.

    Raises ``BenchError`` for a hit that was never added, and what the memory raises.
    """
    adds = _adds(conversation)
    # Names hold what is played: a server that met this conversation before sees a replay, another data set meets no old user.
    user = opaque(seed, conversation.index, adds)
    ids: list[str] = []
    for number, (place, messages) in enumerate(adds):
        request = opaque(user, "request", number)
        memory.add(_body(request_id=request, user_id=user, session_id=opaque(user, "session", place), messages=messages))
        ids += [hit_id(user, request, position) for position in range(len(messages))]  # none is blank: each has a label
    session_of = {turn.id: session.id for session in conversation.sessions for turn in session.turns}
    turn_of = dict(zip(ids, session_of, strict=True))  # both in the order of the conversation
    session_of_hit = {hit: session_of[turn] for hit, turn in turn_of.items()}

    def outcome(question: Question) -> Outcome:
        hits = memory.search(_body(user_id=user, query=question.text, top_k=PLATFORM.top_k))
        return Outcome(
            question=question,
            gold_sessions=frozenset(session_of[turn] for turn in question.gold),
            sessions=tuple(rank_sessions(hits, session_of_hit)),  # refuses a hit that was never added
            turns=tuple(turn_of[hit.id] for hit in hits),
            contents=tuple(hit.content for hit in hits if isinstance(hit.content, str)),
        )

    return [outcome(question) for question in conversation.asked]


def _adds(conversation: Conversation) -> list[Add]:
    return [
        (place, messages[first : first + MESSAGES_PER_ADD])
        for place, session in enumerate(conversation.sessions)
        for messages in [_messages(session)]
        for first in range(0, len(messages), MESSAGES_PER_ADD)
    ]


def _messages(session: Session) -> list[Message]:
    return [{"role": turn.role, "content": turn.content, "timestamp": session.timestamp} for turn in session.turns]


def _levels(prefix: str, ranked: Sequence[str], gold: AbstractSet[str]) -> dict[str, float]:
    return {
        **{f"{prefix}any@{k}": recall_any_at_k(ranked, gold, k) for k in DEPTHS},
        **{f"{prefix}recall@{k}": recall_at_k(ranked, gold, k) for k in DEPTHS},
        f"{prefix}ndcg@10": ndcg_at_k(ranked, gold, 10),
        f"{prefix}mrr": reciprocal_rank(ranked, gold),
    }


def _body(**fields: object) -> bytes:
    return json.dumps(fields).encode()
