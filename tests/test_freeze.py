from __future__ import annotations

import json
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest

from memserver.errors import ConfigError
from memserver.freeze import Frozen, commit, freeze, write
from memserver.methods import load_settings

IDENTITY = ("-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false")


def git(folder: Path, *command: str) -> str:
    return subprocess.run(["git", *IDENTITY, *command], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    (folder / "code").mkdir(parents=True)
    (folder / "code" / "a.py").write_text("")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "m")
    return folder


def frozen(checkout: Path, **variables: str) -> Frozen:
    settings = load_settings(
        {"MEMSERVER_EMBEDDER": "hashing", **{f"MEMSERVER_{name}": value for name, value in variables.items()}}
    )
    return freeze(settings, "run 1", {"DASHSCOPE_API_KEY": "swordfish"}, checkout / "code")


def test_a_record_names_the_commit_model_settings_and_versions(checkout: Path) -> None:
    record = frozen(checkout, PORT="9000")
    assert record.label == "run 1"
    assert record.commit == git(checkout, "rev-parse", "HEAD")
    assert (record.model, record.dimension, record.fingerprint) == ("hashing", 256, "hashing-1-256")
    assert record.settings["MEMSERVER_PORT"] == "9000"
    assert record.python == platform.python_version()
    assert record.packages["numpy"] == version("numpy")
    assert json.loads(record.as_json())["commit"] == record.commit
    assert f"commit {record.commit}" in record.as_markdown()


def test_the_hash_of_the_settings_changes_with_them_and_not_with_the_keys(checkout: Path) -> None:
    one, same, other = (frozen(checkout, **given) for given in ({}, {"API_KEYS": "swordfish"}, {"DEPTH": "999"}))
    assert one.settings_sha256 == same.settings_sha256 != other.settings_sha256


def test_secrets_are_named_and_counted_but_not_shown(checkout: Path) -> None:
    record = frozen(checkout, API_KEYS="swordfish, opensesame")
    assert record.secrets == {"MEMSERVER_API_KEYS": "2 set"}
    assert "swordfish" not in record.as_json() + record.as_markdown()


def test_a_checkout_with_changes_is_refused_but_for_the_records_themselves(checkout: Path) -> None:
    (checkout / "FROZEN.json").write_text("")
    (checkout / "code" / "FROZEN.md").write_text("")
    assert commit(checkout / "code") == git(checkout, "rev-parse", "HEAD")
    (checkout / "new.py").write_text("")
    with pytest.raises(ConfigError, match="commit them"):
        commit(checkout / "code")


def test_code_outside_of_git_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="from its checkout"):
        commit(tmp_path)


def test_records_are_written_side_by_side_and_never_over_others(checkout: Path, tmp_path: Path) -> None:
    record = frozen(checkout)
    assert [path.name for path in write(record, tmp_path)] == ["FROZEN.json", "FROZEN.md"]
    (tmp_path / "FROZEN.json").unlink()
    with pytest.raises(ConfigError, match="move what was frozen before away"):
        write(record, tmp_path)
    assert not (tmp_path / "FROZEN.json").exists()
