"""One case through Add and Search, and the sessions ranked by what came back.

The product sees opaque names, each message's role and text, the date of its session, and the question. Hits carry no session; the
product's documented ``hit_id`` tells which message each one is, so no text is compared.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b

from benchmark.client import Memory
from benchmark.data import Case
from benchmark.errors import BenchError
from memserver.engine import hit_id
from memserver.types import Hit

MESSAGES_PER_ADD = 20  # as the platform sends them
TOP_K = 100  # as the platform asks
SESSION_WEIGHTS = (1.0, 0.3, 0.15)  # "w3": the best hit decides, two more support it

Add = tuple[int, list[dict[str, str | int]]]
"""The place of a session in its case, and the messages of one Add."""


def play(case: Case, memory: Memory, seed: int = 0) -> list[str]:
    """The case's session ids as the memory ranks them, best first; a session without a hit is not among them.

    Raises ``BenchError`` for a hit that was never added, and what the memory raises.
    """
    adds = list(_adds(case))
    # Names hold what is played: a server that met this case before sees a replay, another data set meets no old user.
    user = opaque(seed, case.index, adds)
    session_of: dict[str, str] = {}
    for number, (place, messages) in enumerate(adds):
        request = opaque(user, "request", number)
        memory.add(_body(request_id=request, user_id=user, session_id=opaque(user, "session", place), messages=messages))
        kept = sum(bool(str(message["content"]).strip()) for message in messages)
        session_of |= {hit_id(user, request, position): case.sessions[place].id for position in range(kept)}
    return rank_sessions(memory.search(_body(user_id=user, query=case.question, top_k=TOP_K)), session_of)


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


def _adds(case: Case) -> list[Add]:
    return [
        (
            place,
            [
                {"role": turn.role, "content": turn.content, "timestamp": session.timestamp}
                for turn in session.turns[first : first + MESSAGES_PER_ADD]
            ],
        )
        for place, session in enumerate(case.sessions)
        for first in range(0, len(session.turns), MESSAGES_PER_ADD)
    ]


def _body(**fields: object) -> bytes:
    return json.dumps(fields).encode()
