"""A record of what answers in a scored run: code, settings, model, versions. Secrets by name and number alone."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import distributions
from pathlib import Path

from memserver import __version__
from memserver.config import Settings
from memserver.embedders import EMBEDDERS
from memserver.errors import ConfigError
from memserver.methods import build, variables
from memserver.types import Embedder

NAMES = ("FROZEN.json", "FROZEN.md")
SOURCE = Path(__file__).parent
SECRETS = ("MEMSERVER_API_KEYS",)


@dataclass(frozen=True, slots=True)
class Frozen:
    """``settings_sha256``: of the settings as JSON with sorted names. ``fingerprint``: of the model's weights."""

    label: str
    frozen_at: str
    version: str
    commit: str
    settings: Mapping[str, str]
    settings_sha256: str
    secrets: Mapping[str, str]
    model: str
    dimension: int
    fingerprint: str
    python: str
    platform: str
    packages: Mapping[str, str]

    def as_json(self) -> str:
        return json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"

    def as_markdown(self) -> str:
        """The facts in a table, then the settings that are set."""
        facts = {
            "frozen at": self.frozen_at,
            "release": f"memserver {self.version}, commit {self.commit}",
            "settings": f"SHA-256 {self.settings_sha256}",
            "model": f"{self.model}, {self.dimension} dimensions, fingerprint {self.fingerprint}",
            "runs on": f"Python {self.python}, {self.platform}",
            **self.secrets,
        }
        tables = [_table("fact", facts), _table("setting", self.settings), _table("package", self.packages)]
        return f"# Frozen: {self.label}\n\n" + "\n".join(tables)


def freeze(settings: Settings, label: str, environ: Mapping[str, str], source: Path = SOURCE) -> Frozen:
    """What this code would run as with ``settings``; loads the model.

    Raises ``ConfigError`` if the code is in no git checkout or differs from its commit, or if the model can't be had.
    """
    at = commit(source)
    embedder: Embedder = build(EMBEDDERS, settings.embedder, settings.options)
    embedder.load()
    shown = {variable.name: variable.value for variable in variables(settings) if variable.name not in SECRETS}
    key_variable = str(settings.options.get("openai", {}).get("key_variable", "")) if settings.embedder == "openai" else ""
    secrets = {"MEMSERVER_API_KEYS": f"{len(settings.api_keys)} set"}
    if key_variable:
        secrets[key_variable] = "set" if environ.get(key_variable) else "not set"
    return Frozen(
        label=label,
        frozen_at=datetime.now(UTC).isoformat(timespec="seconds"),
        version=__version__,
        commit=at,
        settings=shown,
        settings_sha256=hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest(),
        secrets=secrets,
        model=embedder.model,
        dimension=embedder.dimension,
        fingerprint=embedder.fingerprint,
        python=platform.python_version(),
        platform=platform.platform(),
        packages={found.name: found.version for found in sorted(distributions(), key=lambda found: found.name.lower())},
    )


def write(frozen: Frozen, folder: Path) -> list[Path]:
    """Write both files into ``folder``. Raises ``ConfigError`` if one is there already or can't be written."""
    paths = [folder / name for name in NAMES]
    if any(path.exists() for path in paths):
        raise ConfigError(f"{' or '.join(NAMES)} is in this folder already: move what was frozen before away")
    try:
        for path, text in zip(paths, (frozen.as_json(), frozen.as_markdown()), strict=True):
            path.write_text(text, "utf-8")
    except OSError as error:
        raise ConfigError(f"{folder} can't be written ({error.strerror}): freeze in another folder") from error
    return paths


def commit(source: Path) -> str:
    """The commit that the checkout around ``source`` is at. Raises ``ConfigError`` if it has changes, or is none."""
    unfrozen = [f":(exclude,top,glob)**/{name}" for name in NAMES]
    if _git(source, "status", "--porcelain", "--", ":(top)", *unfrozen):
        raise ConfigError("the checkout has changes that are in no commit: commit them, or put them away, then freeze")
    return _git(source, "rev-parse", "HEAD")


def _git(source: Path, *command: str) -> str:
    # A GIT_DIR of the caller, say of a hook, would name another repository.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(["git", *command], cwd=source, env=environ, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise ConfigError("git can't tell which commit this code is: install git, and run memserver from its checkout") from error
    return done.stdout.strip()


def _table(head: str, rows: Mapping[str, str]) -> str:
    return "\n".join([f"| {head} | value |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in rows.items()), ""])
