"""Text -> vectors. A new embedder is one file here and one line in ``EMBEDDERS``."""

from __future__ import annotations

from memserver.embedders.hashing import Hashing
from memserver.embedders.minilm import MiniLM
from memserver.embedders.none import NoEmbedder
from memserver.embedders.openai import OpenAI
from memserver.types import Embedder

EMBEDDERS: dict[str, type[Embedder]] = {"minilm": MiniLM, "openai": OpenAI, "hashing": Hashing, "none": NoEmbedder}
