"""Adds that tell where they come from: each text names its user by a sentinel and itself by a word of its own."""

from __future__ import annotations

import random
from dataclasses import dataclass
from hashlib import blake2b

import orjson

from memserver.preparing import hit_id

FIRST_MS = 1_700_000_000_000
MINUTE_MS = 60_000
SESSIONS = 3  # of a user, taken in turn
WORDS = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in ("a", "e", "i", "o", "u", "au") for c in ("n", "rin", "lo", "mek", "st")]
CHINESE = "医生说他的病情已经好转需要继续服药观察"
LONG = 8_000  # characters; the longest message that the platform sends
BLANK = " \n\t"


@dataclass(frozen=True, slots=True)
class Add:
    """An Add: its ``body``, and the ``texts`` that are kept of it, blank turns left out."""

    user: str
    request: str
    texts: tuple[str, ...]
    body: bytes

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of its hits, in the order of ``texts``."""
        return tuple(hit_id(self.user, self.request, position) for position in range(len(self.texts)))


@dataclass(frozen=True, slots=True)
class Author:
    """Writes Adds. The same author, user and number, the same bytes: nothing need be kept to send an Add again.

    ``most``: messages in an Add; ``long`` and ``blank``: shares of messages of 8,000 characters and of blanks. All timestamps
    of a user are distinct.
    """

    seed: int
    most: int = 3
    long: float = 0.0
    blank: float = 0.0

    def user(self, number: int) -> str:
        return f"user:{self.seed}:{number}/é"

    def sentinel(self, user: str) -> str:
        """A word that every sentence of this user has, and no other's."""
        return "zq" + blake2b(f"{self.seed} {user}".encode(), digest_size=6).hexdigest()

    def add(self, user: str, number: int, messages: int | None = None) -> Add:
        """The ``number``-th Add of a user, of so many messages if that is given."""
        chance = random.Random(f"{self.seed} {user} {number}")
        texts = [self._text(chance, user) for _ in range(messages or chance.randint(1, self.most))]
        request = f"{user}:{number}"
        sent = [
            {
                "role": chance.choice(["user", "assistant"]),
                "content": text,
                "timestamp": FIRST_MS + number * MINUTE_MS + place * 1000,
            }
            for place, text in enumerate(texts)
        ]
        ids = {"request_id": request, "user_id": user, "session_id": f"session {number % SESSIONS}"}
        return Add(user, request, tuple(text for text in texts if text != BLANK), orjson.dumps(ids | {"messages": sent}))

    def vocabulary(self, user: str, words: int) -> Add:
        """An Add of one message with so many distinct words, for caches that keep words."""
        text = " ".join([self.sentinel(user), *(f"zv{number:x}" for number in range(words))])
        ids = {"request_id": f"{user}:words", "user_id": user, "session_id": "words"}
        return Add(user, ids["request_id"], (text,), orjson.dumps(ids | {"messages": [{"role": "user", "content": text}]}))

    def query(self, chance: random.Random) -> str:
        """A few words that texts are made of."""
        return " ".join(chance.choices(WORDS, k=chance.randint(1, 12)))

    def _text(self, chance: random.Random, user: str) -> str:
        kind = chance.random()
        if kind < self.blank:
            return BLANK
        start = f"{chance.randbytes(6).hex()} was said by {self.sentinel(user)}"
        if kind >= self.blank + self.long:
            return f"{start}: {self._sentence(chance, user)}"
        return (f"{start}: " + " ".join(self._sentence(chance, user) for _ in range(LONG // 40)))[:LONG]

    def _sentence(self, chance: random.Random, user: str) -> str:
        """Marked, so that a part of a long message is known by its user, too."""
        words = chance.choices(WORDS, k=chance.randint(4, 16))
        return f"{self.sentinel(user)} {' '.join(words)} {''.join(chance.choices(CHINESE, k=3))}."
