"""Adds on their way to the store: what of each message is counted, embedded and kept in mind."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from memserver.config import Settings
from memserver.text import ANALYZERS, index_prefix, label_of
from memserver.traits import body_of, goes_on, tail, traits
from memserver.types import AddRequest, Chunk, Embedder, Entry, FloatArray, Message, StoredMessage, Traits


def hit_id(user_id: str, request_id: str, position: int) -> str:
    """The id of the ``position``-th kept message of an Add: opaque, and the same wherever and whenever that Add is stored."""
    key = "\0".join((str(len(user_id)), user_id, request_id, str(position)))
    return hashlib.blake2b(key.encode(), digest_size=12).hexdigest()


@dataclass(frozen=True, slots=True)
class Prepared:
    """A message on its way to an Entry: its term counts, and the texts to embed, one for each of its windows."""

    id: str
    message: Message
    traits: Traits
    terms: Counter[str]
    texts: list[str]

    def entry(self, vectors: Mapping[bytes, FloatArray]) -> Entry:
        """With the vectors of its texts, by ``text_hash``."""
        return Entry(
            id=self.id,
            message=self.message,
            stems=tuple(self.terms),
            counts=np.minimum(list(self.terms.values()), 65_535).astype(np.uint16),
            chunks=tuple(Chunk(key, vectors[key]) for key in map(text_hash, self.texts)),
            traits=self.traits,
        )


def text_hash(text: str) -> bytes:
    """Identifies a text that was embedded."""
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def prepared(request: AddRequest, said: StoredMessage | None, embedder: Embedder, settings: Settings) -> Iterator[Prepared]:
    """Every message of an Add, in order; ``said`` is what was last said in its session before."""
    stems = ANALYZERS[settings.analyzer]
    placed = next((message.timestamp for message in request.messages if message.timestamp is not None), None)
    before, before_id = (said.message, said.id) if said else (None, "")
    for position, message in enumerate(request.messages):
        prefix = index_prefix(message.role, message.timestamp if settings.index_dates else None, message.text)
        cut = before is not None and goes_on(before, message, settings.cut_chars)
        text = label_of(message.text) + tail(before.text) + body_of(message.text) if before and cut else message.text
        texts = [prefix + window for window in windows(embedder, text, prefix)]
        if position and not cut:  # the message before must be of the same Add: Adds may arrive in another order the next time
            texts = _in_context(request.messages[position - 1].text.strip(), text, texts, embedder, settings.context_chars)
        id_ = hit_id(request.user_id, request.request_id, position)
        yield Prepared(id_, message, traits(message, placed, before_id if cut else None), Counter(stems(prefix + text)), texts)
        before, before_id = message, id_


def windows(embedder: Embedder, text: str, prefix: str = "") -> list[str]:
    """The embedder's windows of ``text`` that have more than blanks, which some embedders refuse."""
    pieces = (text[start:end] for start, end in embedder.windows(text, prefix))
    return [piece for piece in pieces if piece.strip()]


def _in_context(context: str, text: str, texts: list[str], embedder: Embedder, longest: int) -> list[str]:
    """Short turns of talk lean on each other: one that follows a short one is embedded with it, where a window holds both."""
    if len(texts) != 1 or not context or max(len(context), len(text)) > longest:
        return texts
    together = f"{context}\n{texts[0]}"
    return [together] if len(embedder.windows(together, "")) == 1 else texts
