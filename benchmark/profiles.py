"""Named settings to measure: the default, the default without one of its parts, and older methods rebuilt to compare with."""

from __future__ import annotations

from collections.abc import Mapping

from benchmark.play import PLATFORM, Style
from memserver.config import Leg, Settings

_LEGS = Settings().legs
_RERANKERS = Settings().rerankers


def _legs(*legs: Leg) -> str:
    return ", ".join(map(str, legs))


def _over(retriever: str) -> str:
    """The default BM25 legs' views and weights with another retriever."""
    return _legs(*(Leg(retriever, leg.view, leg.weight) for leg in _LEGS if leg.retriever == "bm25"))


SEED: Mapping[str, object] = {
    # agentmemory's published method, as far as its documentation tells it.
    "analyzer": "ascii",
    "index_dates": "false",
    "legs": "bm25_prefix/chunk=0.4, vectors/chunk=0.6",
    "minilm_head": 512,  # characters; all that it embeds of a session
    "vectors_long_discount": 0,
    "context_chars": 0,
    "cut_chars": 0,
    "advice_boost": 1,
    "rerankers": "",
    "fuser": "rrf",
    "rrf_agreement": 0.05,
    "depth": 40,
    "result_chars": 0,
}

PROFILES: dict[str, Mapping[str, object]] = {
    "default": {},
    "bm25": {"embedder": "none", "legs": _over("bm25")},
    "rank_bm25": {"embedder": "none", "legs": _over("rank_bm25")},
    "vector": {"legs": "vectors/chunk=1"},
    "seed": SEED,
    **{f"minus-{leg.retriever}-{leg.view}": {"legs": _legs(*(other for other in _LEGS if other != leg))} for leg in _LEGS},
    **{f"minus-{name}": {"rerankers": ", ".join(other for other in _RERANKERS if other != name)} for name in _RERANKERS},
    "no-long-discount": {"vectors_long_discount": 0},
    "no-advice-boost": {"advice_boost": 1},
    "no-context": {"context_chars": 0},
    "no-dates": {"index_dates": "false"},
}
"""Settings over the product's defaults, by the profile's name."""

STYLES: Mapping[str, Style] = {"seed": Style(documents=True, top_k=20)}
"""How a profile's cases are sent, where it isn't as the platform does. agentmemory takes twice its 20 results from each leg."""


def style(profile: str) -> Style:
    return STYLES.get(profile, PLATFORM)
