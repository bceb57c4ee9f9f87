"""Stored messages -> hits: what the answer model gets to read, within a length budget."""

from collections.abc import Mapping, Sequence
from typing import Literal

from memserver.text import day, label, moment
from memserver.types import Hit, Image, Message, Part, StoredMessage

ContentStyle = Literal["dated", "raw"]

MAX_IMAGE_BYTES = 30 * 2**20
"""Of all images of one response, decoded: 40 MiB as base64."""


def present(
    ranking: Sequence[tuple[int, float]], messages: Mapping[int, StoredMessage], style: ContentStyle, budget: int
) -> list[Hit]:
    """Hits for ``ranking``, (seq, score) best first.

    ``budget``: characters of content in total, 0 for no limit. The first hit is always given whatever its length; a later one
    that would pass the budget is left out, so that shorter ones behind it still find room; so is one whose images would pass
    the 30 MiB that the contract allows a response. A message deleted meanwhile is left out too.
    """
    hits: list[Hit] = []
    length = image_bytes = 0
    for seq, score in ranking:
        stored = messages.get(seq)
        if stored is None:
            continue
        content = _content(stored.message, style)
        size, image_size = _sizes(content)
        if (hits and budget and length + size > budget) or image_bytes + image_size > MAX_IMAGE_BYTES:
            continue
        length += size
        image_bytes += image_size
        hits.append(Hit(stored.id, content, score, _created_at(stored.message.timestamp)))
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


def _sizes(content: str | tuple[Part, ...]) -> tuple[int, int]:
    """Characters of text, and bytes of images."""
    if isinstance(content, str):
        return len(content), 0
    texts = sum(len(part) for part in content if isinstance(part, str))
    return texts, sum(len(part.data) for part in content if isinstance(part, Image))


def _created_at(timestamp: int | None) -> str | None:
    found = moment(timestamp)
    return found.isoformat(timespec="milliseconds").replace("+00:00", "Z") if found else None
