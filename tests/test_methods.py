from __future__ import annotations

from collections import Counter
from dataclasses import MISSING, dataclass, field, fields

import pytest
from pydantic import SecretStr

from memserver.config import Leg, Settings
from memserver.embedders import EMBEDDERS
from memserver.errors import ConfigError
from memserver.fusers import FUSERS
from memserver.methods import REGISTRIES, Registry, build, load_settings, variables
from memserver.rerankers import RERANKERS
from memserver.retrievers import RETRIEVERS


@dataclass(frozen=True)
class Echo:
    model: str = "small"
    batch_size: int = 8
    fast: bool = False
    state: list[str] = field(init=False, default_factory=list)


@dataclass(frozen=True)
class Okapi:
    k1: float = 1.2

    def __post_init__(self) -> None:
        if self.k1 < 0:
            raise ValueError("k1 must not be negative")


@dataclass(frozen=True)
class Plain:
    pass


FAKES: dict[str, Registry] = {
    "embedder": {"minilm": Echo, "none": Plain},
    "view": {"chunk": Plain, "context": Plain, "session": Plain},
    "retriever": {"bm25": Okapi, "vectors": Plain},
    "fuser": {"rrf_scored": Plain},
    "reranker": dict.fromkeys(("speakers", "answers", "periods", "sessions", "updates"), Plain),
}


def load(**environ: str) -> Settings:
    return load_settings({f"MEMSERVER_{name}": value for name, value in environ.items()}, registries=FAKES)


def problems(**environ: str) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        load(**environ)
    return str(refused.value).splitlines()


def test_variables_set_the_settings() -> None:
    settings = load(PORT="9000", API_KEYS="a, b", LEGS="bm25/session=2", RERANKERS="")
    assert settings.port == 9000
    assert settings.api_keys == (SecretStr("a"), SecretStr("b"))
    assert settings.legs == (Leg("bm25", "session", 2.0),)
    assert settings.rerankers == ()


def test_other_variables_do_not_matter() -> None:
    assert load_settings({"PATH": "/bin", "PORT": "1"}, registries=FAKES).port == 8000


def test_overrides_win_over_variables() -> None:
    settings = load_settings({"MEMSERVER_PORT": "1", "MEMSERVER_BM25_K1": "1"}, {"port": 2, "bm25_k1": "3"}, FAKES)
    assert (settings.port, settings.options["bm25"]["k1"]) == (2, 3.0)


def test_tunables_take_the_type_of_their_default() -> None:
    options = load(MINILM_MODEL="7", MINILM_BATCH_SIZE="16", MINILM_FAST="true", BM25_K1="2").options
    assert options == {"minilm": {"model": "7", "batch_size": 16, "fast": True}, "bm25": {"k1": 2.0}}


def test_tunables_that_are_not_set_keep_their_default() -> None:
    assert load().options == {"minilm": {"model": "small", "batch_size": 8, "fast": False}, "bm25": {"k1": 1.2}}


def test_a_method_is_built_with_its_tunables() -> None:
    assert build(FAKES["embedder"], "minilm", load(MINILM_BATCH_SIZE="2").options) == Echo(batch_size=2)
    assert build(FAKES["view"], "chunk", load().options) == Plain()


def test_a_value_that_the_method_refuses_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match=r"MEMSERVER_BM25_\*: k1 must not be negative"):
        build(FAKES["retriever"], "bm25", load(BM25_K1="-1").options)


def test_an_unknown_variable_is_refused_with_the_nearest_name() -> None:
    assert problems(PROT="1") == ["MEMSERVER_PROT: no such setting; did you mean MEMSERVER_PORT?"]


def test_an_unknown_variable_without_a_near_name_is_refused_with_all_names() -> None:
    (line,) = problems(XYZZY="1")
    assert "there are MEMSERVER_ADVICE_BOOST, MEMSERVER_ANALYZER, MEMSERVER_API_KEYS, " in line


def test_the_options_as_a_whole_are_not_a_variable() -> None:
    (line,) = problems(OPTIONS="{")
    assert line.startswith("MEMSERVER_OPTIONS: no such setting")


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("PORT", "http", "should be a valid integer, unable to parse string as an integer"),
        ("PORT", "", "should be a valid integer, unable to parse string as an integer"),
        ("PORT", "65536", "should be less than or equal to 65535"),
        ("WORKERS", "0", "should be greater than or equal to 1"),
        ("CONTENT", "html", "should be 'dated' or 'raw'"),
        ("LEGS", "bm25", "must be retriever/view=weight, separated by commas, weights from 1e-6 to 1e6"),
        ("LEGS", "bm42/chunk=1", "retriever must be one of bm25, vectors"),
        ("LEGS", "bm25/page=1", "view must be one of chunk, context, session"),
        ("EMBEDDER", "bert", "embedder must be one of minilm, none"),
        ("FUSER", "", "fuser must be one of rrf_scored"),
        ("RERANKERS", "sessions, cross", "reranker must be one of speakers, answers, periods, sessions, updates"),
        ("CUT_CHARS", "-1", "should be greater than or equal to 0"),
        ("ADVICE_BOOST", "0", "should be greater than 0"),
        ("FOLD_NEIGHBOURS", "2", "should be a valid boolean, unable to interpret input"),
        ("BM25_K1", "high", "should be a valid number, unable to parse string as a number"),
        ("BM25_K1", "nan", "should be a finite number"),
        ("MINILM_BATCH_SIZE", "1.5", "should be a valid integer, unable to parse string as an integer"),
        ("MINILM_FAST", "2", "should be a valid boolean, unable to interpret input"),
    ],
)
def test_a_bad_value_is_refused_with_its_variable_and_what_is_allowed(name: str, value: str, reason: str) -> None:
    assert problems(**{name: value}) == [f"MEMSERVER_{name}: {reason}"]


def test_all_problems_are_told_at_once() -> None:
    lines = problems(PROT="1", WORKERS="0", EMBEDDER="bert", BM25_K1="high")
    assert [line.split(":")[0].removeprefix("MEMSERVER_") for line in lines] == ["PROT", "WORKERS", "EMBEDDER", "BM25_K1"]


def test_no_value_appears_in_a_problem() -> None:
    secret = "sk-swordfish"
    lines = problems(API_KEYS=f"{secret},,", API_KEY=secret, PORT=secret, EMBEDDER=secret, LEGS=secret, BM25_K1=secret)
    assert len(lines) == 6
    assert secret not in "\n".join(lines)


def test_variables_are_listed_with_value_and_default() -> None:
    listed = {variable.name: (variable.value, variable.default) for variable in variables(load(BM25_K1="2"), FAKES)}
    assert listed["MEMSERVER_BM25_K1"] == ("2.0", "1.2")
    assert listed["MEMSERVER_PORT"] == ("8000", "8000")
    assert len(listed) == len(Settings.model_fields) - len(["options"]) + len(["model", "batch_size", "fast", "k1"])


# --- what every registered method has to keep -------------------------------------------------------------------------

METHODS = [(name, cls) for registry in REGISTRIES.values() for name, cls in registry.items()]


@pytest.mark.parametrize(("name", "cls"), METHODS, ids=[name for name, _ in METHODS])
def test_each_init_field_is_a_tunable_whose_type_is_that_of_its_default(name: str, cls: type) -> None:
    for tunable in fields(cls):
        if tunable.init:
            assert tunable.default is not MISSING, f"{name}.{tunable.name} needs a default"
            assert tunable.type in {type(tunable.default), type(tunable.default).__name__}
            assert type(tunable.default) in {str, int, float, bool}


def test_each_variable_belongs_to_one_setting() -> None:
    counts = Counter(variable.name for variable in variables(Settings()))
    assert {name for name, count in counts.items() if count > 1} == set()


def test_each_method_has_one_name() -> None:
    assert len({name for name, _ in METHODS}) == len(METHODS)


def test_the_defaults_are_registered_methods() -> None:
    assert load_settings({}).embedder == "minilm"


@pytest.mark.parametrize(
    ("registry", "name", "options"),
    [
        (FUSERS, "rrf", {"k": -1.0}),
        (FUSERS, "rrf", {"agreement": -0.1}),
        (FUSERS, "rrf_scored", {"k": -1.0}),
        (RERANKERS, "speakers", {"boost": -0.1}),
        (RERANKERS, "answers", {"discount": 1.1}),
        (RERANKERS, "answers", {"gain": -0.1}),
        (RERANKERS, "periods", {"boost": -0.1}),
        (RERANKERS, "periods", {"grace": -1}),
        (RERANKERS, "sessions", {"discount": -0.1}),
        (RERANKERS, "updates", {"likeness": 0.0}),
        (RERANKERS, "updates", {"likeness": 1.1}),
        (RERANKERS, "cross_encoder", {"top": 0}),
        (RERANKERS, "cross_encoder", {"batch_size": 0}),
        (RETRIEVERS, "bm25", {"k1": -1.0}),
        (RETRIEVERS, "bm25", {"b": 1.5}),
        (RETRIEVERS, "bm25_prefix", {"b": -0.5}),
        (RETRIEVERS, "bm25_prefix", {"prefix": -0.5}),
        (RETRIEVERS, "rank_bm25", {"b": 2.0}),
        (EMBEDDERS, "minilm", {"batch_size": 0}),
    ],
)
def test_a_tunable_out_of_its_range_is_refused(registry: Registry, name: str, options: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=f"MEMSERVER_{name.upper()}"):
        build(registry, name, {name: options})
