"""What a memory is measured against: one that returns nothing, one that returns history at random, and one that knows the answer.

Each is a Memory that is sent the very same Adds and Searches, and presents what it chooses by the product's own rules:
at most ``top_k`` hits, and as many characters in all as its settings allow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import islice
from random import Random
from statistics import fmean

import numpy as np

from benchmark.data import Case
from benchmark.locomo_data import Conversation
from benchmark.systems import Row
from memserver.config import Settings
from memserver.contract import read_add, read_search
from memserver.preparing import hit_id
from memserver.presenter import Presenter
from memserver.types import Hit, Message, Ranked, StoredMessage, Traits
from memserver.types import Row as MessageRow
from memserver.users import UserLayout

Order = Callable[[str, Sequence[Message]], Iterable[int]]
"""A query and a user's messages, in the order added -> the places of those to return, best first."""

Said = tuple[int | None, str]
"""A message as the bench knows it: its timestamp and its text."""


class Control:
    """A Memory that keeps every message and returns those that ``order`` chooses. Thread-safe for different users.

    ``settings``: how hits are presented, and how long they may be together. A hit shows its message alone, without neighbours.
    """

    def __init__(self, order: Order, settings: Settings) -> None:
        self._order = order
        self._presenter = Presenter(settings.content, settings.resolve_dates, fold_neighbours=False)
        self._budget = settings.result_chars
        self._kept: dict[str, tuple[list[StoredMessage], UserLayout]] = {}

    def add(self, body: bytes) -> None:
        request, _ = read_add(body)
        kept, layout = self._kept.setdefault(request.user_id, ([], UserLayout()))
        new = [
            StoredMessage(seq, hit_id(request.user_id, request.request_id, position), request.session_id, message)
            for position, (seq, message) in enumerate(enumerate(request.messages, len(kept)))
        ]
        kept += new
        layout.add([_row(stored) for stored in new])

    def search(self, body: bytes) -> list[Hit]:
        """The chosen messages, scored 1 / rank."""
        request = read_search(body)
        kept, layout = self._kept.get(request.user_id, ([], UserLayout()))
        chosen = list(islice(self._order(request.query, [stored.message for stored in kept]), request.top_k))
        ranked = Ranked(np.array(chosen, np.int32), 1 / np.arange(1.0, len(chosen) + 1))

        def fetch(places: Sequence[int], _: int) -> dict[int, StoredMessage]:
            return {place: kept[place] for place in places}

        return self._presenter.present(ranked, layout, fetch, self._budget, request.top_k)

    def describe(self) -> Mapping[str, object]:
        return {}


def _row(stored: StoredMessage) -> MessageRow:
    """Of a message that nobody indexes."""
    message, nothing_counted, no_vectors = stored.message, np.empty(0, np.uint16), np.empty((0, 0), np.float32)
    traits = Traits(len(message.text))
    return MessageRow(stored.seq, stored.id, stored.session_id, message.timestamp, traits, (), nothing_counted, no_vectors)


def nothing(*_: object) -> Iterable[int]:
    """No message: the floor."""
    return ()


def at_random(seed: int) -> Order:
    """Messages in an order that depends on the seed, the query and how many there are: what luck alone finds."""

    def order(query: str, messages: Sequence[Message]) -> Iterable[int]:
        generator = Random(f"{seed}/{query}")
        return generator.sample(range(len(messages)), len(messages))

    return order


def averaged(draws: Sequence[Mapping[str, Row]]) -> dict[str, Row]:
    """The first draw's rows with the metrics' means over all draws; a row's rank is then 1 / its mean reciprocal rank."""
    return {
        id: replace(row, metrics={name: fmean(draw[id].metrics[name] for draw in draws) for name in row.metrics})
        for id, row in draws[0].items()
    }


def oracle(gold: Mapping[str, AbstractSet[Said]]) -> Order:
    """The messages that hold the answer and nothing else: the ceiling. ``gold``: by query."""

    def order(query: str, messages: Sequence[Message]) -> Iterable[int]:
        return (place for place, message in enumerate(messages) if (message.timestamp, message.text) in gold.get(query, ()))

    return order


def gold_of_cases(cases: Sequence[Case]) -> dict[str, set[Said]]:
    """LongMemEval: the turns marked as evidence; of a gold session without a mark, all turns."""
    gold: dict[str, set[Said]] = {}
    for case in cases:
        marked = {session for session, _ in case.evidence}
        gold.setdefault(case.question, set()).update(
            (session.timestamp, turn.content)
            for place, session in enumerate(case.sessions)
            if session.id in case.gold
            for position, turn in enumerate(session.turns)
            if place not in marked or (place, position) in case.evidence
        )
    return gold


def gold_of_conversations(conversations: Sequence[Conversation]) -> dict[str, set[Said]]:
    """LoCoMo: the turns that are a question's evidence."""
    gold: dict[str, set[Said]] = {}
    for conversation in conversations:
        said = {turn.id: (session.timestamp, turn.content) for session in conversation.sessions for turn in session.turns}
        for question in conversation.questions:
            gold.setdefault(question.text, set()).update(said[turn] for turn in question.gold)
    return gold
