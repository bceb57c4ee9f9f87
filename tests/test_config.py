from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr, ValidationError

from memserver.config import MAX_WEIGHT, Leg, Settings, parse_legs, shown, split_commas


def test_legs_are_retriever_slash_view_with_a_weight() -> None:
    assert parse_legs("bm25/chunk=0.15, vectors/chunk=.7,rank_bm25/session=1") == (
        Leg("bm25", "chunk", 0.15),
        Leg("vectors", "chunk", 0.7),
        Leg("rank_bm25", "session", 1.0),
    )


@pytest.mark.parametrize("text", ["", "bm25", "bm25/chunk", "bm25/chunk=", "bm25/chunk=x", "bm25/chunk=-1", "bm25/chunk=nan"])
def test_legs_of_another_form_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="retriever/view=weight"):
        parse_legs(text)


def test_a_leg_without_weight_is_refused() -> None:
    with pytest.raises(ValueError, match="weights from 1e-6"):
        parse_legs("bm25/chunk=0")


def test_a_leg_named_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="once"):
        parse_legs("bm25/chunk=1, bm25/chunk=2")


weights = st.floats(min_value=0.001, max_value=1000).map(lambda weight: round(weight, 3))
names = st.sampled_from(["bm25", "vectors", "rank_bm25"])


@given(st.lists(st.builds(Leg, names, names, weights), min_size=1, unique_by=lambda leg: (leg.retriever, leg.view)))
def test_legs_read_back_as_they_are_shown(legs: list[Leg]) -> None:
    assert parse_legs(shown(tuple(legs))) == tuple(legs)


def test_commas_separate_and_blanks_around_them_do_not_count() -> None:
    assert split_commas(" a, b ,c") == ("a", "b", "c")


def test_a_blank_list_is_empty() -> None:
    assert split_commas(" ") == ()


def test_an_empty_item_is_refused_for_it_could_be_an_empty_key() -> None:
    with pytest.raises(ValueError, match="empty item"):
        split_commas("a,,b")


def test_the_default_is_hybrid_search_on_this_machine_alone() -> None:
    settings = Settings()
    assert (settings.host, settings.port, settings.data_dir) == ("127.0.0.1", 8000, Path("data"))
    assert shown(settings.legs) == "bm25/chunk=0.25, bm25/context=0.35, bm25/session=0.3, vectors/chunk=0.8"
    assert shown(settings.rerankers) == "speakers, answers, periods, sessions, updates"
    assert settings.api_keys == ()


@pytest.mark.parametrize("name", ["context_chars", "cut_chars", "result_chars", "result_chars_choice"])
def test_lengths_are_switched_off_by_zero_and_never_negative(name: str) -> None:
    assert getattr(Settings.model_validate({name: 0}), name) == 0
    with pytest.raises(ValidationError, match="greater than or equal to 0"):
        Settings.model_validate({name: -1})


@pytest.mark.parametrize("factor", ["0", "-1", "nan", "inf", 2 * MAX_WEIGHT])
def test_the_advice_boost_is_a_weight(factor: object) -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate({"advice_boost": factor})
    assert Settings(advice_boost=MAX_WEIGHT).advice_boost == MAX_WEIGHT


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Settings().port = 1  # type: ignore[misc]


def test_settings_do_not_read_the_environment_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSERVER_PORT", "1")
    assert Settings().port == 8000


def test_every_setting_says_what_it_means() -> None:
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


def test_keys_are_never_shown() -> None:
    settings = Settings(api_keys=(SecretStr("opensesame"), SecretStr("swordfish")))
    assert shown(settings.api_keys) == "(2 hidden)"
    assert "opensesame" not in f"{settings!r} {settings} {settings.model_dump_json()}"
