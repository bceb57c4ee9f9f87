from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from benchmark.errors import BenchError
from benchmark.results import (
    REVISION,
    Question,
    Result,
    describe_file,
    load,
    make_manifest,
    read_manifest,
    revision,
    save,
    source_digest,
)

QUESTION = Question(
    id="q", type="t", scored=True, gold=["a"], ranked=["b", "a"], gold_ranks=[2], turn=None, metrics={"mrr": 1 / 2}
)


def manifest(**changed: Any) -> dict[str, Any]:
    made = make_manifest(
        command="python -m benchmark.longmemeval --data tiny.json",
        profile="default",
        mode="bm25",
        via="engine",
        product={"settings": {"depth": "1000"}, "embedder": "none", "model": "none", "fingerprint": "", "legs": {}},
        data={"file": "tiny.json", "sha256": "0" * 64, "questions": 1},
        seed=0,
        seconds=1.25,
        partial=False,
        concurrency=4,
        cached={"cache_hits": 3, "cache_misses": 1},
    )
    return made | {"commit": "0123456789ab", "dirty": False} | changed


def result(**changed: Any) -> Result:
    means = {"n": 1, "mrr": 0.5}
    groups = {"scored": means, "all": means}
    return Result(
        "longmemeval", manifest(**changed), groups, {"mrr": [0.5, 0.5]}, {"t": means}, {"search_ms": {"n": 0}}, [QUESTION]
    )


def test_a_saved_result_reads_back_the_same(tmp_path: Path) -> None:
    path = save(result(), tmp_path / "new folder")
    assert path.name == "longmemeval-default-0123456789ab.json"
    assert load(path) == result(date=load(path).manifest["date"])
    assert read_manifest(path)["command"].startswith("python -m benchmark")


def test_a_result_of_uncommitted_code_says_so_in_its_name() -> None:
    assert result(dirty=True).name == "longmemeval-default-0123456789ab-dirty"


def test_a_part_of_the_questions_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="no result and is not saved"):
        save(result(partial=True), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_seed_stands_in_the_name_unless_it_is_the_usual_one() -> None:
    assert result(seed=7).name == "longmemeval-default-seed7-0123456789ab"


def test_a_servers_code_is_unknown() -> None:
    assert result(profile="server", commit=None, dirty=None).name == "longmemeval-server-http"


@pytest.mark.parametrize(
    "changed",
    [
        {"data": {"file": "tiny.json", "sha256": "1" * 64}},
        {"reader": {"model": "small"}},
        {"profile": "default-seed7"},  # of the same name as the seed's
    ],
)
def test_another_run_is_not_written_over(tmp_path: Path, changed: dict[str, Any]) -> None:
    before = result(seed=7)
    save(before, tmp_path)
    save(before, tmp_path)
    with pytest.raises(BenchError, match=r"holds the result of another run, on tiny\.json"):
        save(result(**{"seed": 0 if "profile" in changed else 7, **changed}), tmp_path)


def test_another_server_is_not_written_over(tmp_path: Path) -> None:
    save(result(via="http", commit=None), tmp_path)
    with pytest.raises(BenchError, match="another run"):
        save(result(via="http", commit=None, product={"version": "2"}), tmp_path)


@pytest.mark.parametrize(("hits", "misses", "share"), [(3, 1, 3 / 4), (0, 4, 0), (0, 0, 0), (None, None, 0)])
def test_the_share_of_vectors_from_the_cache(hits: int | None, misses: int | None, share: float) -> None:
    assert result(cache_hits=hits, cache_misses=misses).cached == share


def part(via: str = "engine", resumed: int = 0) -> dict[str, Any]:
    given: dict[str, Any] = {"command": "", "profile": "", "mode": None, "via": via, "product": {"version": "1"}, "data": {}}
    given |= {"seed": 0, "seconds": 1.25, "partial": False, "concurrency": 2, "cached": {}, "resumed": resumed}
    return make_manifest(**given)


def test_a_server_is_not_told_by_the_checkout_of_its_client() -> None:
    made = part(via="http")
    assert [made[name] for name in ("commit", "dirty", "libraries", "product")] == [None, None, None, {"version": "1"}]


def test_the_time_of_a_part_is_not_told() -> None:
    assert [part(resumed=n)["seconds"] for n in (0, 3)] == [1.2, None]
    assert part(resumed=3)["resumed"] == 3


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BenchError, match="give another folder"):
        save(result(), tmp_path / "file")


@pytest.mark.parametrize("value", [[], {}, {"benchmark": "longmemeval", "manifest": {}}])
def test_another_file_is_no_result(tmp_path: Path, value: object) -> None:
    path = tmp_path / "other.json"
    path.write_text(json.dumps(value))
    with pytest.raises(BenchError, match="not a result file"):
        load(path)


def test_a_manifest_says_what_ran_where() -> None:
    made = manifest()
    assert {name: made[name] for name in ("profile", "mode", "via", "embedder", "seconds", "seed")} == {
        "profile": "default",
        "mode": "bm25",
        "via": "engine",
        "embedder": "none",
        "seconds": 1.2,
        "seed": 0,
    }
    assert made["settings"] == {"depth": "1000"}
    assert made["product"]["legs"] == {}
    assert [made[name] for name in ("concurrency", "cache_hits", "cache_misses", "resumed")] == [4, 3, 1, 0]
    assert {"memserver", "numpy", "nltk"} <= made["libraries"].keys()
    assert made["machine"].keys() == {"cpu", "cores", "memory_gb", "python", "platform"}


def test_a_data_file_is_named_without_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    path.write_bytes(b"[]")
    assert describe_file(path) == {"file": "data.json", "sha256": sha256(b"[]").hexdigest()}
    with pytest.raises(BenchError, match="can't be read"):
        describe_file(tmp_path / "absent.json")


def test_the_code_has_one_digest_and_other_code_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert source_digest() == source_digest()
    monkeypatch.setattr("benchmark.results.ROOT", tmp_path)
    (tmp_path / "memserver").mkdir()
    empty = source_digest()
    (tmp_path / "memserver" / "engine.py").write_text("x = 1")
    assert source_digest() != empty


def test_outside_of_a_checkout_the_commit_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmark.results.ROOT", tmp_path)
    assert revision() == ("unknown", True)


def test_a_commit_during_the_run_does_not_change_what_was_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmark.results.revision", lambda: ("another", False))
    made = part()
    assert (made["commit"], made["dirty"]) == REVISION


def test_a_changed_result_differs() -> None:
    assert replace(result(), benchmark="locomo").name.startswith("locomo-")
