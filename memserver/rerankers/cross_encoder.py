"""A cross-encoder that reads question and message together: better and far slower. Off by default."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from memserver.errors import ConfigError
from memserver.types import Ranked, Scene

if TYPE_CHECKING:  # importing it takes seconds
    from sentence_transformers import CrossEncoder as Model


@dataclass(frozen=True)
class CrossEncoder:
    """Orders the first hits by a cross-encoder's score; the others stay behind them in their order.

    model: path of a folder or id on the Hugging Face hub, to be read by sentence-transformers; there is no default.
    top: how many hits are read, default 30. batch_size: pairs that go through the model at once, default 16.
    """

    model: str = ""
    top: int = 30
    batch_size: int = 16
    _loaded: list[Model] = field(init=False, repr=False, compare=False, default_factory=list)
    _lock: Lock = field(init=False, repr=False, compare=False, default_factory=Lock)

    def __post_init__(self) -> None:
        if self.top < 1 or self.batch_size < 1:
            raise ValueError("top and batch_size must be at least 1")

    def load(self) -> None:
        """Read the weights. Raises ``ConfigError`` where no model is named or it can't be had."""
        if not self.model:
            raise ConfigError("cross_encoder: set MEMSERVER_CROSS_ENCODER_MODEL to a model's folder or its id on the hub")
        from sentence_transformers import CrossEncoder as Model

        try:
            self._loaded.append(Model(self.model, device="cpu"))
        except Exception as error:  # what it raises depends on the files, the network and the hub
            raise ConfigError(
                f"cross_encoder: no model could be loaded ({type(error).__name__}); give its folder, or allow access to the hub"
            ) from error

    def rerank(self, ranked: Ranked, scene: Scene) -> Ranked:
        top = ranked.entries[: self.top]
        pairs = [(scene.query.text, message.text if message else "") for message in scene.messages(top)]
        if not pairs or not self._loaded:
            return ranked
        with self._lock:
            read = np.asarray(self._loaded[0].predict(pairs, batch_size=self.batch_size, show_progress_bar=False), np.float64)
        scores = ranked.scores / (1 + np.abs(ranked.scores).max()) - 1  # below all that were read
        scores[: len(top)] = 1 / (1 + np.exp(-read.reshape(len(top))))
        return Ranked(ranked.entries, scores)
