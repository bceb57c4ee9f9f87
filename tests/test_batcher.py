"""The batcher: one queue, shared batches, urgent first, failures that stay where they belong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from time import sleep

import numpy as np
import pytest

from memserver.embedders.batcher import LOOKAHEAD, Batcher, BatcherStats
from memserver.embedders.hashing import Hashing
from memserver.embedders.none import NoEmbedder
from memserver.errors import EmbedderError
from memserver.types import FloatArray

BATCH = 4
HASHING = Hashing(32)


@dataclass
class Gated:
    """Hashing that records its calls. A call with the text "hold" reports itself and waits until it is let go; "bad" fails."""

    batch_size: int = BATCH
    concurrency: int = 1
    dimension: int = 32
    model: str = "gated"
    fingerprint: str = "gated"
    calls: list[list[str]] = field(default_factory=list)
    held: Event = field(default_factory=Event)
    gate: Event = field(default_factory=Event)
    spoil: Callable[[FloatArray], FloatArray] = lambda vectors: vectors

    def load(self) -> None: ...

    def coverage(self, text: str) -> float:
        return 1.0

    def windows(self, text: str, prefix: str) -> list[tuple[int, int]]:
        return HASHING.windows(text, prefix)

    def embed(self, texts: Sequence[str]) -> FloatArray:
        self.calls.append(list(texts))
        if "hold" in texts:
            self.held.set()
            assert self.gate.wait(60)
        if "bad" in texts:
            raise ZeroDivisionError("the secret content")
        return self.spoil(HASHING.embed(texts))


@contextmanager
def batching(embedder: Gated, queue_limit: int = 4096) -> Iterator[tuple[Batcher, ThreadPoolExecutor]]:
    batcher = Batcher(embedder, queue_limit)
    with ThreadPoolExecutor(64) as callers:
        try:
            yield batcher, callers
        finally:
            embedder.gate.set()
            batcher.close()


def held(embedder: Gated, batcher: Batcher, callers: ThreadPoolExecutor) -> Future[FloatArray]:
    """A request that keeps the worker busy until ``embedder.gate`` is set."""
    future = callers.submit(batcher.embed, ["hold"])
    assert embedder.held.wait(60)
    return future


def until(condition: Callable[[], bool]) -> None:
    while not condition():
        sleep(0.001)


def test_vectors_come_back_in_the_order_of_the_texts() -> None:
    texts = ["a long text about cats", "b", "a middling text", "b", "dogs", "x" * 40]
    with batching(Gated()) as (batcher, _):
        assert batcher.embed(texts).tolist() == HASHING.embed(texts).tolist()


def test_no_texts_give_no_vectors_at_once() -> None:
    embedder = Gated()
    with batching(embedder) as (batcher, _):
        assert batcher.embed([]).shape == (0, 32)
    assert embedder.calls == []


def test_an_embedder_without_dimension_is_served() -> None:
    batcher = Batcher(NoEmbedder())
    assert batcher.embed(["a", "b"]).shape == (2, 0)
    batcher.close()


def test_concurrent_requests_share_batches() -> None:
    embedder = Gated()
    with batching(embedder) as (batcher, callers):
        held(embedder, batcher, callers)
        futures = [callers.submit(batcher.embed, [f"text {i}"]) for i in range(BATCH)]
        until(lambda: batcher.waiting == BATCH)
        embedder.gate.set()
        vectors = [future.result()[0].tolist() for future in futures]
    assert sorted(embedder.calls[1]) == [f"text {i}" for i in range(BATCH)]
    assert vectors == HASHING.embed([f"text {i}" for i in range(BATCH)]).tolist()


def test_texts_of_a_block_are_sorted_by_length() -> None:
    embedder = Gated()
    lengths = [7, 1, 8, 2, 5, 3, 6, 4]
    with batching(embedder) as (batcher, _):
        batcher.embed(["x" * length for length in lengths])
    assert [[len(text) for text in call] for call in embedder.calls] == [[1, 2, 3, 4], [5, 6, 7, 8]]


def test_a_block_has_the_oldest_texts_so_that_long_ones_are_not_put_off() -> None:
    embedder = Gated()
    block = LOOKAHEAD * BATCH
    with batching(embedder) as (batcher, _):
        batcher.embed([*("long" * 10 + str(i) for i in range(block)), *(f"s{i}" for i in range(block))])
    assert all(text.startswith("long") for call in embedder.calls[:LOOKAHEAD] for text in call)


def test_equal_texts_of_a_batch_are_embedded_once() -> None:
    embedder = Gated()
    with batching(embedder) as (batcher, _):
        vectors = batcher.embed(["same", "same", "other"])
    assert sorted(embedder.calls[0]) == ["other", "same"]
    assert vectors[0].tolist() == vectors[1].tolist()


def test_urgent_texts_go_before_the_next_batch() -> None:
    embedder = Gated()
    with batching(embedder) as (batcher, callers):
        held(embedder, batcher, callers)
        ordinary = callers.submit(batcher.embed, [f"text {i}" for i in range(2 * BATCH)])
        until(lambda: batcher.waiting == 2 * BATCH)
        urgent = callers.submit(batcher.embed, ["query"], urgent=True)
        until(lambda: batcher.waiting == 2 * BATCH + 1)
        embedder.gate.set()
        urgent.result()
        ordinary.result()
    assert embedder.calls[1] == ["query"]


def test_urgent_texts_do_not_starve_the_others() -> None:
    embedder = Gated()
    block = LOOKAHEAD * BATCH
    with batching(embedder) as (batcher, callers):
        held(embedder, batcher, callers)
        ordinary = callers.submit(batcher.embed, ["text"])
        until(lambda: batcher.waiting == 1)
        urgent = callers.submit(batcher.embed, [f"query {i}" for i in range(3 * block)], urgent=True)
        until(lambda: batcher.waiting == 3 * block + 1)
        embedder.gate.set()
        ordinary.result()
        urgent.result()
    assert embedder.calls.index(["text"]) == 1 + LOOKAHEAD


def test_a_full_queue_blocks_ordinary_requests_and_never_urgent_ones() -> None:
    embedder = Gated()
    with batching(embedder, queue_limit=3) as (batcher, callers):
        held(embedder, batcher, callers)
        first = callers.submit(batcher.embed, ["a", "b", "c"])
        until(lambda: batcher.waiting == 3)
        second = callers.submit(batcher.embed, ["d"])
        urgent = callers.submit(batcher.embed, ["query"], urgent=True)
        until(lambda: batcher.waiting == 3 + 1)
        assert not second.done()
        embedder.gate.set()
        assert [len(future.result()) for future in (first, second, urgent)] == [3, 1, 1]
    assert ["d"] in embedder.calls


def test_a_request_larger_than_the_queue_is_served() -> None:
    with batching(Gated(), queue_limit=2) as (batcher, callers):
        futures = [callers.submit(batcher.embed, [f"{i} {j}" for j in range(10)]) for i in range(8)]
        assert [future.result().shape for future in futures] == [(10, 32)] * 8


def test_a_failing_batch_fails_its_requests_and_no_others() -> None:
    embedder = Gated(batch_size=1)
    with batching(embedder) as (batcher, callers):
        held(embedder, batcher, callers)
        failing = callers.submit(batcher.embed, ["bad"])
        fine = callers.submit(batcher.embed, ["good"])
        until(lambda: batcher.waiting == 2)
        embedder.gate.set()
        assert fine.result().shape == (1, 32)
        with pytest.raises(EmbedderError, match="ZeroDivisionError") as caught:
            failing.result()
        assert "secret" not in str(caught.value)
        assert batcher.embed(["after"]).shape == (1, 32)


def test_a_text_that_is_refused_fails_its_own_request_and_not_those_of_the_same_batch() -> None:
    embedder = Gated()
    with batching(embedder) as (batcher, callers):
        held(embedder, batcher, callers)
        texts = ["bad", "one", "two", "three"]
        futures = [callers.submit(batcher.embed, [text]) for text in texts]
        until(lambda: batcher.waiting == len(texts) == BATCH)
        embedder.gate.set()
        assert [future.exception() is None for future in futures] == [False, True, True, True]


def test_an_embedder_that_is_out_of_reach_is_not_asked_again_for_each_request() -> None:
    def out_of_reach(_: FloatArray) -> FloatArray:
        raise EmbedderError("no answer")

    embedder = Gated(spoil=lambda vectors: vectors)
    with batching(embedder) as (batcher, callers):
        held(embedder, batcher, callers)
        embedder.spoil = out_of_reach
        futures = [callers.submit(batcher.embed, [text]) for text in ("one", "two", "three")]
        until(lambda: batcher.waiting == 3)
        embedder.gate.set()
        assert all(isinstance(future.exception(), EmbedderError) for future in futures)
    assert len(embedder.calls) == 1 + 1


def test_the_remaining_texts_of_a_failed_request_are_dropped() -> None:
    embedder = Gated()
    with batching(embedder) as (batcher, _):
        with pytest.raises(EmbedderError):
            batcher.embed(["bad", *(f"a longer text {i}" for i in range(100))])
        assert batcher.waiting == 0
    assert len(embedder.calls) == 1


def test_the_advice_of_an_embedders_own_error_is_kept() -> None:
    def refuse(_: FloatArray) -> FloatArray:
        raise EmbedderError("check the API key")

    with batching(Gated(spoil=refuse)) as (batcher, _), pytest.raises(EmbedderError, match="check the API key"):
        batcher.embed(["a"])


@pytest.mark.parametrize(
    "spoil",
    [
        lambda vectors: vectors[:-1],
        lambda vectors: vectors[:, :-1],
        lambda vectors: vectors * 2,
        lambda vectors: vectors * np.float32(np.nan),
        lambda vectors: vectors * 0,
    ],
    ids=["count", "dimension", "length", "nan", "zero"],
)
def test_vectors_that_can_not_be_used_are_refused(spoil: Callable[[FloatArray], FloatArray]) -> None:
    with batching(Gated(spoil=spoil)) as (batcher, _), pytest.raises(EmbedderError, match="the embedder gave"):
        batcher.embed(["a", "b"])


def test_close_fails_what_is_queued_and_finishes_what_runs() -> None:
    embedder = Gated()
    with batching(embedder, queue_limit=1) as (batcher, callers):
        running = held(embedder, batcher, callers)
        queued = callers.submit(batcher.embed, ["queued"])
        until(lambda: batcher.waiting == 1)
        blocked = callers.submit(batcher.embed, ["blocked"])
        closing = callers.submit(batcher.close)
        for future in (queued, blocked):
            with pytest.raises(EmbedderError, match="stopping"):
                future.result()
        embedder.gate.set()
        closing.result()
        assert running.result().shape == (1, 32)
        with pytest.raises(EmbedderError, match="stopping"):
            batcher.embed(["late"])


def test_as_many_calls_run_at_once_as_the_embedder_allows() -> None:
    embedder = Gated(concurrency=2)
    with batching(embedder) as (batcher, callers):
        held(embedder, batcher, callers)
        assert batcher.embed(["meanwhile"]).shape == (1, 32)


def test_many_callers_all_get_their_own_vectors() -> None:
    def roundtrip(i: int) -> bool:
        texts = [f"{i} {'x' * (j * i % 17)}" for j in range(i % 7 + 1)]
        return bool((batcher.embed(texts, urgent=i % 3 == 0) == HASHING.embed(texts)).all())

    with batching(Gated(concurrency=3), queue_limit=10) as (batcher, callers):
        assert all(callers.map(roundtrip, range(300)))


def test_stats_tell_what_waits_and_what_was_embedded_but_not_what_failed() -> None:
    embedder = Gated()
    with batching(embedder) as (batcher, _):
        batcher.embed(["one", "two", "one", "\u4f60"])  # one batch; a text that comes twice is embedded once
        batcher.embed(["four"], urgent=True)
        with pytest.raises(EmbedderError):
            batcher.embed(["bad"])
        stats = batcher.stats()
    assert stats == BatcherStats(waiting=0, batches={3: 1, 1: 1}, embedded_bytes=3 + 3 + 3 + 4)
