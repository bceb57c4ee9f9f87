"""The methods that can be chosen, and their tunables as settings.

A method is a dataclass in its folder's registry. Its init fields with a default are its tunables; each of them is the
variable ``MEMSERVER_<METHOD>_<FIELD>``, with the type of its default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_settings import EnvSettingsSource

from memserver.config import PREFIX, Options, Settings, Tunable, shown
from memserver.embedders import EMBEDDERS
from memserver.errors import ConfigError
from memserver.fusers import FUSERS
from memserver.rerankers import RERANKERS
from memserver.retrievers import RETRIEVERS
from memserver.views import VIEWS

T = TypeVar("T")
Registry = Mapping[str, type[Any]]

REGISTRIES: Mapping[str, Registry] = {
    "embedder": EMBEDDERS,
    "view": VIEWS,
    "retriever": RETRIEVERS,
    "fuser": FUSERS,
    "reranker": RERANKERS,
}


@dataclass(frozen=True, slots=True)
class Variable:
    """One MEMSERVER_* variable: its values in effect and by default, as text."""

    name: str
    value: str
    default: str
    meaning: str


def build(registry: Mapping[str, type[T]], name: str, options: Options) -> T:
    """The method registered under ``name`` with its tunables. Raises ``ConfigError`` if it refuses their values."""
    try:
        return registry[name](**options.get(name, {}))
    except ValueError as error:
        raise ConfigError(f"{PREFIX}{name.upper()}_*: {error}") from error


def load_settings(
    environ: Mapping[str, str],
    overrides: Mapping[str, object] | None = None,
    registries: Mapping[str, Registry] = REGISTRIES,
) -> Settings:
    """Settings from variables; ``overrides`` win, by the names without prefix in lower case (``port``, ``bm25_k1``).

    Raises ``ConfigError`` with one line for each problem: unknown variables, bad values, methods that are not registered.
    No line shows a value that was given.
    """
    given: dict[str, Any] = {name.upper(): value for name, value in environ.items() if name.upper().startswith(PREFIX)}
    given |= {(PREFIX + name).upper(): value for name, value in (overrides or {}).items()}
    known = {variable.name for variable in variables(Settings(), registries)}
    problems = [f"{name}: {_no_such(name, known)}" for name in given if name not in known]
    settings, base_problems = _base({name: value for name, value in given.items() if name in known})
    options, option_problems = _options(given, registries)
    problems += base_problems + _unregistered(settings, registries) + option_problems
    if problems:
        raise ConfigError("\n".join(problems))
    return settings.model_copy(update={"options": options})


def variables(settings: Settings, registries: Mapping[str, Registry] = REGISTRIES) -> list[Variable]:
    """Every variable there is, with its effective value in ``settings``."""
    base = [
        Variable(_variable(name), shown(getattr(settings, name)), shown(field.default), field.description or "")
        for name, field in Settings.model_fields.items()
        if name != "options"
    ]
    return base + [
        Variable(
            _variable(method, field),
            shown(settings.options.get(method, {}).get(field, default)),
            shown(default),
            f"{field} of the {kind} {method}",
        )
        for kind, method, field, default in _tunables(registries)
    ]


def _variable(*names: str) -> str:
    return PREFIX + "_".join(names).upper()


def _tunables(registries: Mapping[str, Registry]) -> Iterator[tuple[str, str, str, Tunable]]:
    """(kind, method, field, default) of every tunable."""
    for kind, registry in registries.items():
        for method, cls in registry.items():
            for field in fields(cls):
                if field.init and field.default is not MISSING:
                    yield kind, method, field.name, field.default


def _base(given: Mapping[str, Any]) -> tuple[Settings, list[str]]:
    """The settings, with the default in the place of each bad value, and the problems."""
    source = EnvSettingsSource(Settings)
    source.env_vars = {name.lower(): value for name, value in given.items()}
    values = source()
    try:
        return Settings(**values), []
    except ValidationError as error:
        bad = {str(detail["loc"][0]): detail for detail in error.errors(include_input=False)}
        problems = [f"{_variable(name)}: {_reason(detail)}" for name, detail in bad.items()]
        return Settings(**{name: value for name, value in values.items() if name not in bad}), problems


def _options(given: Mapping[str, Any], registries: Mapping[str, Registry]) -> tuple[Options, list[str]]:
    options: dict[str, dict[str, Tunable]] = {}
    problems = []
    for _, method, field, default in _tunables(registries):
        variable = _variable(method, field)
        try:
            adapter = TypeAdapter(type(default), config=ConfigDict(allow_inf_nan=False))
            options.setdefault(method, {})[field] = adapter.validate_python(given.get(variable, default))
        except ValidationError as error:
            problems += [f"{variable}: {_reason(detail)}" for detail in error.errors(include_input=False)]
    return options, problems


def _unregistered(settings: Settings, registries: Mapping[str, Registry]) -> list[str]:
    chosen = [
        ("EMBEDDER", "embedder", {settings.embedder}),
        ("LEGS", "view", {leg.view for leg in settings.legs}),
        ("LEGS", "retriever", {leg.retriever for leg in settings.legs}),
        ("FUSER", "fuser", {settings.fuser}),
        ("RERANKERS", "reranker", set(settings.rerankers)),
    ]
    return [
        f"{PREFIX}{variable}: {kind} must be one of {', '.join(registries[kind])}"
        for variable, kind, names in chosen
        if not names <= registries[kind].keys()
    ]


def _no_such(name: str, known: set[str]) -> str:
    near = get_close_matches(name.removeprefix(PREFIX), [other.removeprefix(PREFIX) for other in known], n=1)
    return "no such setting; " + (f"did you mean {PREFIX}{near[0]}?" if near else f"there are {', '.join(sorted(known))}")


def _reason(detail: Mapping[str, Any]) -> str:
    """Pydantic's message, which names the allowed values and never the one given."""
    return str(detail["msg"]).removeprefix("Value error, ").removeprefix("Input ")
