from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from benchmark.cache import CachedEmbedder
from benchmark.errors import BenchError
from memserver.embedders.hashing import Hashing
from memserver.embedders.none import NoEmbedder
from memserver.types import FloatArray


@dataclass(frozen=True)
class Counting:
    """Hashing that notes every text it is asked for."""

    fingerprint: str = "weights-1"
    asked: list[str] = field(default_factory=list)
    batch_size: int = 4
    concurrency: int = 2
    model: str = "counting"
    dimension: int = 256

    def load(self) -> None: ...

    def coverage(self, text: str) -> float:
        return 1 / len(text)

    def windows(self, text: str, prefix: str) -> list[tuple[int, int]]:
        return Hashing().windows(text, prefix)

    def embed(self, texts: Sequence[str]) -> FloatArray:
        self.asked.extend(texts)
        return Hashing().embed(texts)


@pytest.fixture
def counting() -> Counting:
    return Counting()


@pytest.fixture
def cached(counting: Counting, tmp_path: Path) -> Iterator[CachedEmbedder]:
    with closing(CachedEmbedder(counting, tmp_path / "cache")) as embedder:
        yield embedder


def test_vectors_are_bit_for_bit_those_of_the_embedder_fresh_or_cached(cached: CachedEmbedder) -> None:
    texts = ["a cat", "a dog", "日本語", ""]
    expected = Hashing().embed(texts)
    np.testing.assert_array_equal(cached.embed(texts), expected)
    np.testing.assert_array_equal(cached.embed(texts[::-1]), expected[::-1])


def test_a_known_text_is_not_embedded_again(cached: CachedEmbedder, counting: Counting) -> None:
    cached.embed(["a", "b", "a"])
    cached.embed(["b", "c"])
    assert counting.asked == ["a", "b", "c"]
    assert (cached.hits, cached.misses) == (2, 3)  # the second "a" and the second "b" cost nothing


def test_a_later_run_finds_what_an_earlier_one_embedded(cached: CachedEmbedder, tmp_path: Path) -> None:
    cached.embed(["a"])
    later = Counting()
    with closing(CachedEmbedder(later, tmp_path / "cache")) as again:
        np.testing.assert_array_equal(again.embed(["a"]), Hashing().embed(["a"]))
    assert later.asked == []


def test_vectors_of_other_weights_are_not_taken(cached: CachedEmbedder, tmp_path: Path) -> None:
    cached.embed(["a"])
    other = Counting(fingerprint="weights-2")
    with closing(CachedEmbedder(other, tmp_path / "cache")) as again:
        again.embed(["a"])
    assert other.asked == ["a"]


def test_texts_and_estimated_tokens_are_counted_cached_or_not(cached: CachedEmbedder) -> None:
    cached.embed(["12345678", "1234"])
    cached.embed(["12345678", "日本語"])
    assert cached.texts == 4
    assert (cached.hits, cached.misses) == (1, 3)
    assert cached.tokens == (8 + 4 + 8 + 3 * 3) // 4  # four bytes of UTF-8 a token


def test_threads_share_it(cached: CachedEmbedder) -> None:
    texts = [f"text {number % 20}" for number in range(80)]
    with ThreadPoolExecutor(8) as pool:
        vectors = list(pool.map(lambda text: cached.embed([text])[0], texts))
    np.testing.assert_array_equal(np.array(vectors), Hashing().embed(texts))


def test_no_text_gives_no_vector(cached: CachedEmbedder) -> None:
    assert cached.embed([]).shape == (0, 256)


def test_it_stands_for_its_embedder_in_all_else(cached: CachedEmbedder, counting: Counting) -> None:
    names = ["batch_size", "concurrency", "model", "dimension", "fingerprint"]
    assert [getattr(cached, name) for name in names] == [getattr(counting, name) for name in names]
    assert cached.windows("some text", "label: ") == counting.windows("some text", "label: ")
    assert cached.coverage("text") == 1 / len("text")


def test_a_folder_that_cannot_be_used_is_said_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BenchError, match="give another folder"):
        CachedEmbedder(Counting(), tmp_path / "file")


def test_no_embedder_can_be_cached_too(tmp_path: Path) -> None:
    with closing(CachedEmbedder(NoEmbedder(), tmp_path)) as cached:
        assert cached.embed(["a", "b"]).shape == (2, 0)
        assert cached.embed(["a", "b"]).shape == (2, 0)
