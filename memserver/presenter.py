"""Stored messages -> hits: what the answer model gets to read, within a length budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from memserver.dates import resolved
from memserver.text import day, label, moment
from memserver.traits import body_of, head, tail
from memserver.types import Hit, Image, Layout, Message, Part, Ranked, StoredMessage

JOINT = 1
"""Characters between two contents: the answer model reads them joined by newlines."""

MAX_IMAGE_BYTES = 30 * 2**20
"""Of all images of a response, decoded; 40 MiB as base64."""

SPARE = 4
"""How many times ``limit`` messages are considered for the slots, since long ones may not fit the length budget."""

NEIGHBOUR = 1000
"""Characters of the longest neighbour that is shown with a hit."""

ContentStyle = Literal["dated", "raw"]
Fetch = Callable[[Sequence[int], int], dict[int, StoredMessage]]
"""(positions, most bytes of images) -> messages by position; left out are those that are gone or have too many images."""

Content = str | tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Presenter:
    """How messages are shown. ``raw``: as they were received. ``dated``: with date and role in front, and

    - a piece of a text that arrived cut with the ends of its neighbouring pieces, so that what the cut parted can be read;
    - if ``resolve_dates``, the day behind a relative date: yesterday (2023-05-07);
    - if ``fold_neighbours``, with the messages beside it, where room is left and they are no hits themselves.
    """

    style: ContentStyle
    resolve_dates: bool
    fold_neighbours: bool

    def present(self, ranked: Ranked, layout: Layout, fetch: Fetch, budget: int, limit: int) -> list[Hit]:
        """At most ``limit`` hits from the best entries of ``ranked``, in its order.

        ``budget``: characters of all contents joined, 0 for no limit. The first hit is always given whatever its length; a later
        one that would pass the budget is left out, so that shorter ones behind it still find room.
        """
        hits: dict[int, Hit] = {}
        room = budget or math.inf
        for position, score, stored, content in self._contents(ranked, layout, fetch, limit):
            size = _size(content) + JOINT * bool(hits)
            if hits and size > room:
                continue
            room -= size
            hits[position] = Hit(stored.id, content, score, _created_at(stored.message.timestamp))
            if len(hits) == limit:
                break
        if self.fold_neighbours and self.style == "dated":
            hits = self._folded(hits, layout, fetch, room)
        return list(hits.values())

    def _contents(
        self, ranked: Ranked, layout: Layout, fetch: Fetch, limit: int
    ) -> Iterator[tuple[int, float, StoredMessage, Content]]:
        """(position, score, message, content) of the best messages, read ``limit`` at a time: mostly the first are enough."""
        images = MAX_IMAGE_BYTES
        for start in range(0, min(len(ranked), SPARE * limit), limit):
            positions = ranked.entries[start : start + limit]
            pieces = np.concatenate([layout.continued[positions], layout.continuing[positions]])
            stored = fetch([*positions.tolist(), *pieces[pieces >= 0].tolist()], images)
            for position, score in zip(positions.tolist(), ranked.scores[start : start + limit].tolist(), strict=True):
                if position in stored:
                    message = stored[position].message
                    images -= sum(len(part.data) for part in message.parts if isinstance(part, Image))
                    before, after = (stored.get(int(side[position])) for side in (layout.continued, layout.continuing))
                    yield position, score, stored[position], self._content(message, before, after)

    def _content(self, message: Message, before: StoredMessage | None, after: StoredMessage | None) -> Content:
        if self.style == "raw":
            return message.parts or message.text
        front = _front(message)
        if message.parts:
            first, *rest = (self._text(part, message) if isinstance(part, str) else part for part in message.parts)
            return (front + first, *rest) if isinstance(first, str) else (*filter(None, [front.rstrip()]), first, *rest)
        text = self._text(message.text, message)
        if before:
            body = body_of(text)
            text = text[: len(text) - len(body)] + tail(before.message.text) + body
        if after:
            text += head(after.message.text)
        return front + text.strip()

    def _text(self, text: str, message: Message) -> str:
        stamp = day(message.timestamp) if self.resolve_dates else None
        return resolved(text, stamp) if stamp else text

    def _folded(self, hits: Mapping[int, Hit], layout: Layout, fetch: Fetch, room: float) -> dict[int, Hit]:
        """The hits with their neighbours, the best hit's first, as far as ``room`` goes, in characters."""
        beside = [
            (position, int(side[position]), comes_before)
            for position in hits
            for side, comes_before in ((layout.previous, True), (layout.following, False))
            if side[position] not in (-1, layout.continued[position], layout.continuing[position])
        ]
        beside = [(at, near, before) for at, near, before in beside if near not in hits and layout.lengths[near] <= NEIGHBOUR]
        stored = fetch([neighbour for _, neighbour, _ in beside], 0)
        folded = dict(hits)
        for position, neighbour, comes_before in beside:
            shown = folded[position].content
            if neighbour not in stored or not isinstance(shown, str):
                continue
            content = self._content(stored[neighbour].message, None, None)
            if isinstance(content, str) and len(content) + JOINT <= room:
                room -= len(content) + JOINT
                del stored[neighbour]  # one that stands between two hits is shown once
                both = (content, shown) if comes_before else (shown, content)
                folded[position] = replace(folded[position], content="\n".join(both))
        return folded


def _size(content: Content) -> int:
    return len(content) if isinstance(content, str) else sum(len(part) for part in content if isinstance(part, str))


def _front(message: Message) -> str:
    stamp = day(message.timestamp)
    return (f"[{stamp.isoformat()}] " if stamp else "") + label(message.role, message.text)


def _created_at(timestamp: int | None) -> str | None:
    found = moment(timestamp)
    return found.isoformat(timespec="milliseconds").replace("+00:00", "Z") if found else None
