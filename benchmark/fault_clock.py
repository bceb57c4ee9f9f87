"""The machine's clock goes back. The engine in this process with a clock of ours: no program may set that of the machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import datetime, timedelta, tzinfo
from unittest.mock import patch

from benchmark.author import Add
from benchmark.outcome import Outcome
from benchmark.traffic import ALL
from benchmark.trial import SHOW_ALL, Trial
from memserver.contract import read_add
from memserver.engine import Engine
from memserver.methods import load_settings
from memserver.types import SearchRequest

USERS, ADDS = 4, 5
RETENTION_DAYS = 30
STEPS = (0, -1, -365, -1)  # days from now, one after the other
CLOCKED = ("memserver.engine", "memserver.store", "memserver.erasure")


def clock(trial: Trial) -> Outcome:
    """Adds while the clock goes back by a day and a year, with a restart each time; retention is on and deletes nothing."""
    settings = {name.lower(): value for name, value in {**SHOW_ALL, **trial.settings}.items()}
    chosen = load_settings({}, {**settings, "data_dir": trial.folder / "data", "retention_days": RETENTION_DAYS})
    problems: list[str] = []
    sent: list[Add] = []
    for step, days in enumerate(STEPS):
        adds = trial.adds(USERS, ADDS, first=step * ADDS)
        sent += adds
        with _clock_at(timedelta(days=days)), closing(Engine.open(chosen)) as engine:
            for add in adds:
                engine.add(read_add(add.body)[0])
            again = sum(engine.add(read_add(add.body)[0]) for add in sent)
            engine.tidy()
            problems += [f"clock at {days:+d} days: {again} Adds stored twice"] if again else []
            problems += [f"clock at {days:+d} days: {wrong}" for wrong in _wrong(trial, engine, sent)]
    detail = f"the engine at {', '.join(f'{days:+d}' for days in STEPS)} days: nothing lost, doubled or expired"
    return Outcome(detail, problems, len(STEPS))


@contextmanager
def _clock_at(offset: timedelta) -> Iterator[None]:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + offset

    with ExitStack() as patched:
        for module in CLOCKED:
            patched.enter_context(patch(f"{module}.datetime", Clock))
        yield


def _wrong(trial: Trial, engine: Engine, sent: list[Add]) -> Iterator[str]:
    for user in {add.user for add in sent}:
        found = Counter(hit.id for hit in engine.search(SearchRequest(user, trial.author.sentinel(user), ALL)))
        if found != Counter(id for add in sent if add.user == user for id in add.ids):
            yield "a user's messages are not each there once"
