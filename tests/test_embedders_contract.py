"""What every registered embedder keeps. ``openai`` speaks to an endpoint on loopback."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import FrozenInstanceError, fields
from itertools import pairwise

import numpy as np
import pytest
from embedder_helpers import KEY, loaded_minilm, serving

from memserver.embedders import EMBEDDERS
from memserver.embedders.openai import OpenAI
from memserver.types import Embedder

TEXTS = ["Caroline moved to Oslo", "", " ", "医生您好", "😀", "one\x00two", "word " * 500, "x" * 3000]
LONG = "Ein längerer Text, 医生您好。" * 500 + "x" * 3000 + " end"


@pytest.fixture(params=EMBEDDERS)
def embedder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Embedder]:
    if request.param == "minilm":
        yield loaded_minilm()
    elif request.param == "openai":
        monkeypatch.setenv("SOME_KEY", KEY)
        with serving() as endpoint, closing(OpenAI(base_url=endpoint.url, key_variable="SOME_KEY")) as openai:
            openai.load()
            yield openai
    else:
        other = EMBEDDERS[request.param]()
        other.load()
        yield other


def test_it_names_model_and_fingerprint(embedder: Embedder) -> None:
    assert embedder.model
    assert embedder.fingerprint


def test_batch_size_and_concurrency_allow_work(embedder: Embedder) -> None:
    assert embedder.batch_size >= 1
    assert embedder.concurrency >= 1


def test_loading_again_changes_nothing(embedder: Embedder) -> None:
    before = embedder.embed(["a"]).tolist()
    embedder.load()
    assert embedder.embed(["a"]).tolist() == before


def test_vectors_have_the_dimension_and_unit_length(embedder: Embedder) -> None:
    vectors = embedder.embed(TEXTS)

    assert vectors.shape == (len(TEXTS), embedder.dimension)
    assert vectors.dtype == np.float32
    if embedder.dimension:
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("text", [*TEXTS, LONG, "Привет", "1234"])
def test_coverage_is_a_share_and_full_for_english_and_for_texts_without_letters(embedder: Embedder, text: str) -> None:
    assert 0 <= embedder.coverage(text) <= 1
    if text.isascii():
        assert embedder.coverage(text) == 1


def test_no_texts_give_no_vectors(embedder: Embedder) -> None:
    assert embedder.embed([]).shape == (0, embedder.dimension)


def test_a_vector_does_not_depend_on_the_other_texts(embedder: Embedder) -> None:
    together = embedder.embed(TEXTS)

    np.testing.assert_allclose(together, np.vstack([embedder.embed([text]) for text in TEXTS]), atol=1e-3)


@pytest.mark.parametrize("prefix", ["", "[2023-05-01] user: ", "x " * 100])
def test_windows_cover_a_text_in_order(embedder: Embedder, prefix: str) -> None:
    windows = embedder.windows(LONG, prefix)

    if embedder.dimension:
        assert (windows[0][0], windows[-1][1]) == (0, len(LONG))
    assert all(a[0] < b[0] <= a[1] < b[1] for a, b in pairwise(windows))


def test_an_empty_text_has_no_window(embedder: Embedder) -> None:
    assert embedder.windows("", "user: ") == []


@pytest.mark.parametrize("name", EMBEDDERS)
def test_tunables_are_plain_values_with_documented_defaults(name: str) -> None:
    for field in fields(EMBEDDERS[name]):  # type: ignore[arg-type]
        if field.init:
            assert isinstance(field.default, str | int | float)
            assert f"    {field.name}: " in str(EMBEDDERS[name].__doc__)


@pytest.mark.parametrize("name", EMBEDDERS)
def test_embedders_are_frozen(name: str) -> None:
    with pytest.raises(FrozenInstanceError):
        EMBEDDERS[name]().model = "other"  # type: ignore[misc]


def test_importing_the_embedders_does_not_import_their_models() -> None:
    program = "import sys, memserver.embedders; print([name for name in ('torch', 'transformers') if name in sys.modules])"

    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert printed.strip() == "[]"
