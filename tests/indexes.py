"""Small indexes for tests of the retrieval stages."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from memserver.text import stems
from memserver.types import FloatArray, Message, Query, Ranked, Row, Scene, Traits
from memserver.users import UserLayout


def row(
    seq: int,
    text: str,
    session: str = "s",
    vectors: Sequence[Sequence[float]] = (),
    timestamp: int | None = None,
    traits: Traits | None = None,
) -> Row:
    """A stored message; its id falls as ``seq`` grows, so that order by id and order of arrival differ."""
    counts = Counter(stems(text))
    return Row(
        seq=seq,
        id=f"{10_000 - seq:024d}",
        session_id=session,
        timestamp=timestamp,
        traits=traits or Traits(len(text)),
        stems=tuple(counts),
        counts=np.array(list(counts.values()), np.uint16),
        vectors=_matrix(vectors),
    )


def _matrix(vectors: Sequence[Sequence[float]]) -> FloatArray:
    return np.array(vectors, np.float32) if len(vectors) else np.empty((0, 0), np.float32)


def rows(*messages: tuple[str, str]) -> list[Row]:
    """Rows of (session, text)."""
    return [row(seq, text, session) for seq, (session, text) in enumerate(messages, 1)]


def layout(stored: Sequence[Row]) -> UserLayout:
    made = UserLayout()
    made.add(stored)
    return made


def query(text: str = "", vectors: Sequence[Sequence[float]] = ()) -> Query:
    terms = {term: float(count) for term, count in Counter(stems(text)).items()}
    return Query(terms, _matrix(vectors))


def scene(stored: Sequence[Row], asked: Query | None = None, messages: Sequence[Message] = ()) -> Scene:
    """What rerankers see of these rows; ``messages`` by position."""
    return Scene(asked or query(), layout(stored), lambda positions: [messages[at] for at in positions.tolist()])


def ranked(scores: Mapping[int, float]) -> Ranked:
    """A ranked list from scores by position, given best first."""
    return Ranked(np.array(list(scores), np.int32), np.array(list(scores.values()), np.float64))


def by_position(found: Ranked) -> dict[int, float]:
    return dict(zip(found.entries.tolist(), found.scores.tolist(), strict=True))
