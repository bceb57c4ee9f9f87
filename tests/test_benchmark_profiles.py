from __future__ import annotations

import pytest

from benchmark.play import PLATFORM
from benchmark.profiles import PROFILES, style
from memserver.config import Settings
from memserver.methods import load_settings


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_is_made_of_settings_that_exist(name: str) -> None:
    load_settings({}, PROFILES[name])


def test_the_default_profile_is_the_products_default() -> None:
    assert load_settings({}, PROFILES["default"]) == load_settings({}, {})


def test_each_leg_of_the_default_is_left_out_by_a_profile_of_its_name() -> None:
    legs = Settings().legs
    for leg in legs:
        kept = load_settings({}, PROFILES[f"minus-{leg.retriever}-{leg.view}"]).legs
        assert kept == tuple(other for other in legs if other != leg)


@pytest.mark.parametrize("name", Settings().rerankers)
def test_each_reranker_of_the_default_is_left_out_by_a_profile_of_its_name(name: str) -> None:
    kept = load_settings({}, PROFILES[f"minus-{name}"]).rerankers
    assert kept == tuple(other for other in Settings().rerankers if other != name)


def test_what_else_the_default_does_is_left_out_by_a_profile_each() -> None:
    without = {name: load_settings({}, settings) for name, settings in PROFILES.items() if name.startswith("no-")}
    assert {name: _differs(settings) for name, settings in without.items()} == {
        "no-long-discount": {"vectors_long_discount": 0.0},
        "no-advice-boost": {"advice_boost": 1.0},
        "no-context": {"context_chars": 0},
        "no-dates": {"index_dates": False},
    }


def _differs(settings: Settings) -> dict[str, object]:
    """What is set otherwise than in the default, tunables by method and field."""
    ours, theirs = (
        {name: value for name, value in each if name != "options"}
        | {f"{method}_{field}": value for method, fields in dict(each)["options"].items() for field, value in fields.items()}
        for each in (settings, load_settings({}))
    )
    return {name: value for name, value in ours.items() if value != theirs[name]}


def test_the_seed_does_nothing_that_the_default_does_beside_its_legs() -> None:
    settings = load_settings({}, PROFILES["seed"])
    assert (settings.context_chars, settings.cut_chars, settings.advice_boost, settings.rerankers) == (0, 0, 1, ())
    assert (settings.index_dates, settings.options["vectors"]["long_discount"]) == (False, 0)


def test_rank_bm25_stands_in_for_bm25_over_the_same_views_with_the_same_weights() -> None:
    bm25, rank_bm25 = (load_settings({}, PROFILES[name]) for name in ("bm25", "rank_bm25"))
    assert [(leg.view, leg.weight) for leg in rank_bm25.legs] == [(leg.view, leg.weight) for leg in bm25.legs]
    assert {leg.retriever for leg in rank_bm25.legs} == {"rank_bm25"}
    assert (bm25.embedder, rank_bm25.embedder) == ("none", "none")


def test_the_seed_is_sent_documents_and_asked_for_half_the_candidates_of_a_leg() -> None:
    assert style("seed").documents
    assert 2 * style("seed").top_k == load_settings({}, PROFILES["seed"]).depth
    assert {style(name) for name in PROFILES if name != "seed"} == {PLATFORM}


def test_the_seed_weighs_its_two_legs_as_published() -> None:
    settings = load_settings({}, PROFILES["seed"])
    assert [(str(leg), leg.weight) for leg in settings.legs] == [("bm25_prefix/chunk=0.4", 0.4), ("vectors/chunk=0.6", 0.6)]
    assert (settings.options["rrf"]["k"], settings.options["rrf"]["agreement"]) == (60, 0.05)
    assert (settings.options["bm25_prefix"]["k1"], settings.options["bm25_prefix"]["b"]) == (1.2, 0.75)
    assert (settings.options["bm25_prefix"]["prefix"], settings.options["bm25_prefix"]["synonym"]) == (0.5, 0.7)
