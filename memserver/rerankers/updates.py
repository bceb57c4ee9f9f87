"""What replaced what: of two statements that differ in a word or two the later one holds."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memserver.types import Message, Ranked, Scene

LOOKED_AT = 30
"""Hits from the first: further down the order of two hits hardly matters."""

LONGEST = 2000
"""Characters of a message that is compared; a fact is short."""

COMMON = 3
"""Words that two messages must share at least: "Thanks, Ann!" replaces nothing."""

_WORD = re.compile(r"[\u3400-\u9fff]|\w+")


@dataclass(frozen=True)
class Updates:
    """Among the first hits, those that say almost the same word for word exchange their scores: the latest gets the best.

    All of them stay in the list. ``likeness``: the least share of their words that two messages of one role must have in common
    (Jaccard). ``nearness``: the least share of the better one's score that the other must have, so that both answer the question.
    """

    likeness: float = 0.6
    nearness: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < self.likeness <= 1 or not 0 <= self.nearness <= 1:
            raise ValueError("likeness must be more than 0, at most 1, nearness from 0 to 1")

    def rerank(self, ranked: Ranked, scene: Scene) -> Ranked:
        top = ranked.entries[:LOOKED_AT]
        messages = scene.messages(top)
        scores = ranked.scores.copy()
        for group in self._groups(messages, ranked.scores.tolist()):
            latest_first = sorted(group, key=lambda place: _moment(messages[place], int(top[place])), reverse=True)
            scores[latest_first] = ranked.scores[group]
        return Ranked(ranked.entries, scores)

    def _groups(self, messages: Sequence[Message | None], scores: Sequence[float]) -> Iterator[list[int]]:
        """Places of messages like the best one of them, ascending, which is best first."""
        words = [_words(message) for message in messages]
        left = list(range(len(messages)))
        while left:
            best, *others = left
            alike = [
                other
                for other in others
                if scores[other] >= self.nearness * scores[best] and self._alike(words[best], words[other])
            ]
            if alike:
                yield [best, *alike]
            left = [other for other in others if other not in alike]

    def _alike(self, one: frozenset[str], other: frozenset[str]) -> bool:
        common = len(one & other)
        return common >= COMMON and common >= self.likeness * (len(one) + len(other) - common)


def _words(message: Message | None) -> frozenset[str]:
    """Lower-case words, of Chinese its characters, each marked with who said it: only statements of one role are compared."""
    if message is None or len(message.text) > LONGEST:
        return frozenset()
    return frozenset(f"{message.role} {word}" for word in _WORD.findall(message.text.lower()))


def _moment(message: Message | None, position: int) -> tuple[int, int]:
    """When it was said; equal or missing times go by arrival."""
    return (message.timestamp or 0 if message else 0, position)
