"""One case through Add and Search, and the sessions ranked by what came back.

The product sees opaque names, each message's role and text, the date of its session, and the question. Hits carry no session; the
product's documented ``hit_id`` tells which message each one is, so no text is compared.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from time import perf_counter

from benchmark.client import Memory
from benchmark.data import Case, Place, Session
from benchmark.errors import BenchError
from memserver.preparing import hit_id
from memserver.types import Hit

MESSAGES_PER_ADD = 20  # as the platform sends them
SESSION_WEIGHTS = (1.0, 0.3, 0.15)  # "w3": the best hit decides, two more support it

Message = dict[str, str | int]
Add = tuple[int, list[Message]]
"""The place of a session in its case, and the messages of one Add."""


@dataclass(frozen=True, slots=True)
class Style:
    """How a case is sent and asked. ``documents``: a session is one undated user message of ``role: content`` lines."""

    documents: bool = False
    top_k: int = 100


PLATFORM = Style()
"""As the platform does: message by message, dated, and a hundred hits asked for."""


@dataclass(frozen=True, slots=True)
class Played:
    """What came back. ``ranked``: session ids, best first; a session without a hit is not among them.

    ``turns``: the places of the hits in order, None where sessions are documents; ``contents``: their texts. Times are in
    milliseconds, one for each Add.
    """

    ranked: tuple[str, ...]
    turns: tuple[Place, ...] | None
    contents: tuple[str, ...] = field(repr=False)
    add_ms: tuple[float, ...]
    search_ms: float


def play(case: Case, memory: Memory, seed: int = 0, style: Style = PLATFORM) -> Played:
    """Add the case's haystack and search its question.

    Raises ``BenchError`` for a hit that was never added, and what the memory raises.
    """
    adds = _adds(case, style)
    # Names hold what is played: a server that met this case before sees a replay, another data set meets no old user.
    user = opaque(seed, case.index, adds)
    place_of: dict[str, Place] = {}
    added: dict[int, int] = {}
    add_ms = []
    for number, (session, messages) in enumerate(adds):
        request = opaque(user, "request", number)
        body = _body(request_id=request, user_id=user, session_id=opaque(user, "session", session), messages=messages)
        started = perf_counter()
        memory.add(body)
        add_ms.append(_milliseconds_since(started))
        first = added.get(session, 0)
        added[session] = first + len(messages)
        kept = [place for place, message in enumerate(messages, first) if str(message["content"]).strip()]
        place_of |= {hit_id(user, request, position): (session, place) for position, place in enumerate(kept)}
    body = _body(user_id=user, query=case.question, top_k=style.top_k)
    started = perf_counter()
    hits = memory.search(body)
    search_ms = _milliseconds_since(started)
    ranked = rank_sessions(hits, {id: case.sessions[session].id for id, (session, _) in place_of.items()})
    return Played(
        ranked=tuple(ranked),
        turns=None if style.documents else tuple(place_of[hit.id] for hit in hits),
        contents=tuple(hit.content for hit in hits if isinstance(hit.content, str)),
        add_ms=tuple(add_ms),
        search_ms=search_ms,
    )


def rank_sessions(hits: Sequence[Hit], session_of: Mapping[str, str]) -> list[str]:
    """Sessions by (-score, position of their first hit); a session's score is best + .3 second + .15 third of its hits' scores.

    A score below 0, as a reranker gives to a hit that it puts off, counts as 0: one more hit never harms its session.
    """
    scores: dict[str, list[float]] = {}
    for hit in hits:
        if hit.id not in session_of:
            raise BenchError("a hit that this run never added came back: the server is no memserver, or mixes users")
        scores.setdefault(session_of[hit.id], []).append(max(hit.score, 0.0))
    total = {session: _session_score(of_hits) for session, of_hits in scores.items()}
    return sorted(total, key=lambda session: -total[session])  # stable: ties stay in the order of their first hits


def opaque(*parts: object) -> str:
    """A random-looking name, the same for the same parts."""
    return blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _session_score(scores: Sequence[float]) -> float:
    return sum(weight * score for weight, score in zip(SESSION_WEIGHTS, sorted(scores, reverse=True), strict=False))


def _adds(case: Case, style: Style) -> list[Add]:
    return [
        (place, messages[first : first + MESSAGES_PER_ADD])
        for place, session in enumerate(case.sessions)
        for messages in [_document(session) if style.documents else _messages(session)]
        for first in range(0, len(messages), MESSAGES_PER_ADD)
    ]


def _messages(session: Session) -> list[Message]:
    return [{"role": turn.role, "content": turn.content, "timestamp": session.timestamp} for turn in session.turns]


def _document(session: Session) -> list[Message]:
    return [{"role": "user", "content": "\n".join(f"{turn.role}: {turn.content}" for turn in session.turns)}]


def _body(**fields: object) -> bytes:
    return json.dumps(fields).encode()


def _milliseconds_since(started: float) -> float:
    return round(1000 * (perf_counter() - started), 3)
