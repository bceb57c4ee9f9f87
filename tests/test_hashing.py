"""Hashing: a text's features, and vectors that depend on nothing else."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from memserver.embedders.hashing import Hashing, features


def test_features_are_the_distinct_words_and_their_trigrams() -> None:
    assert list(features("Cat, cat!")) == ["cat", "<ca", "cat", "at>"]


def test_texts_that_share_words_are_more_alike_than_others() -> None:
    query, near, far = Hashing().embed(["Where did my cat sleep?", "The cat sleeps on the sofa", "Quarterly revenue grew"])

    assert query @ near > query @ far + 0.1


def test_texts_that_share_parts_of_words_are_alike() -> None:
    query, near, far = Hashing().embed(["sleeping", "sleeps", "revenue"])

    assert query @ near > query @ far + 0.1


def test_case_and_punctuation_do_not_matter() -> None:
    a, b = Hashing().embed(["The cat.", "the CAT"])

    assert a.tolist() == b.tolist()


def test_a_vector_is_the_same_in_another_process() -> None:
    program = "from memserver.embedders import EMBEDDERS; print(EMBEDDERS['hashing'](8).embed(['a cat'])[0].tolist())"

    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert printed.strip() == str(Hashing(8).embed(["a cat"])[0].tolist())


@pytest.mark.parametrize("text", ["", "!!!", " "])
def test_a_text_without_words_has_a_unit_vector_too(text: str) -> None:
    assert np.linalg.norm(Hashing().embed([text])[0]) == pytest.approx(1)


def test_another_dimension_is_another_fingerprint() -> None:
    assert Hashing(64).fingerprint != Hashing(128).fingerprint


def test_a_dimension_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="dimension"):
        Hashing(0)
