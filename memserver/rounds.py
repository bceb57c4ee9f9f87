"""Work that a server does beside its requests, once at its start and then every hour."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from anyio import create_task_group, sleep, to_thread

HOUR = 3600.0  # seconds

logger = logging.getLogger(__name__)


@asynccontextmanager
async def repeating(work: Callable[[], None], seconds: float = HOUR) -> AsyncIterator[None]:
    """Run ``work`` in a thread every so many seconds until the block ends; what it raises is logged, and it runs again.

    At the end nobody waits for a run under way.
    """

    async def rounds() -> None:
        while True:
            try:
                await to_thread.run_sync(work, abandon_on_cancel=True)
            except Exception:  # the next round may do better, and the server has requests to answer
                logger.exception("a round of upkeep failed; the next one tries again")
            await sleep(seconds)

    async with create_task_group() as tasks:
        tasks.start_soon(rounds)
        yield
        tasks.cancel_scope.cancel()
