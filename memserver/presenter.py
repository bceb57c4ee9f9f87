"""Stored messages -> hits: what the answer model gets to read, within a length budget."""

from collections.abc import Mapping, Sequence
from typing import Literal

from memserver.text import day, label, moment
from memserver.types import Hit, Message, Part, StoredMessage

JOINT = 1
"""Characters between two contents: the answer model reads them joined by newlines."""

ContentStyle = Literal["dated", "raw"]


def present(
    ranking: Sequence[tuple[int, float]],
    messages: Mapping[int, StoredMessage],
    style: ContentStyle,
    budget: int,
    limit: int,
) -> list[Hit]:
    """At most ``limit`` hits from ``ranking``, (seq, score) best first; a seq that ``messages`` lacks is passed over.

    ``budget``: characters of all contents joined, 0 for no limit. The first hit is always given whatever its length; a later one
    that would pass the budget is left out, so that shorter ones behind it still find room.
    """
    hits: list[Hit] = []
    length = 0
    for seq, score in ranking:
        stored = messages.get(seq)
        if stored is None:
            continue
        content = _content(stored.message, style)
        size = len(content) if isinstance(content, str) else sum(len(part) for part in content if isinstance(part, str))
        if hits and budget and length + JOINT + size > budget:
            continue
        length += size + JOINT * bool(hits)
        hits.append(Hit(stored.id, content, score, _created_at(stored.message.timestamp)))
        if len(hits) == limit:
            break
    return hits


def _content(message: Message, style: ContentStyle) -> str | tuple[Part, ...]:
    front = "" if style == "raw" else _front(message)
    if not message.parts:
        return front + (message.text if style == "raw" else message.text.strip())
    if isinstance(message.parts[0], str):
        return (front + message.parts[0], *message.parts[1:])
    return (front.rstrip(), *message.parts) if front else message.parts


def _front(message: Message) -> str:
    stamp = day(message.timestamp)
    return (f"[{stamp.isoformat()}] " if stamp else "") + label(message.role, message.text)


def _created_at(timestamp: int | None) -> str | None:
    found = moment(timestamp)
    return found.isoformat(timespec="milliseconds").replace("+00:00", "Z") if found else None
