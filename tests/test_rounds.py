from __future__ import annotations

import asyncio
import logging
from threading import Event, Semaphore

import pytest

from memserver.rounds import repeating


def test_work_runs_again_and_again_until_the_block_ends_whatever_it_raises(caplog: pytest.LogCaptureFixture) -> None:
    rounds = Semaphore(0)

    def work() -> None:
        rounds.release()
        raise RuntimeError("a secret")

    async def block() -> None:
        async with repeating(work, seconds=0):
            for _ in range(3):
                await asyncio.to_thread(rounds.acquire)

    with caplog.at_level(logging.ERROR):
        asyncio.run(block())
    assert {record.getMessage() for record in caplog.records} == {"a round of upkeep failed; the next one tries again"}


def test_the_end_of_the_block_waits_for_no_round() -> None:
    begun, gate, after = Event(), Event(), Event()

    def work() -> None:
        begun.set()
        gate.wait()

    async def block() -> None:
        async with repeating(work):
            await asyncio.to_thread(begun.wait)
        after.set()
        gate.set()

    asyncio.run(block())
    assert after.is_set()
