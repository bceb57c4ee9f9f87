"""What a request passes before it is read: its key, a free slot, the size of its body. Knows no web framework."""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import contextmanager

import anyio

from memserver.errors import BodyTooLarge, Stalled, TooManyRequests, Unauthorized

Header = tuple[bytes, bytes]
"""Name in lower case, and value, as ASGI gives them."""

DRAIN_BYTES = 256 * 2**20  # several times the largest body that the contract allows
DRAIN_SECONDS = 30
STALL_SECONDS = 60


def authorize(headers: Iterable[Header], keys: Sequence[bytes]) -> None:
    """Passes with one of ``keys`` as ``Authorization: Bearer|Token`` or ``X-Api-Key``, and always when there are no keys.

    Every pair is compared, in constant time, so that the time taken tells nothing. Raises ``Unauthorized``.
    """
    matches = [hmac.compare_digest(given, key) for given in _presented(headers) for key in keys]
    if keys and not any(matches):
        raise Unauthorized("the key is missing or wrong, send it as Authorization: Bearer, Authorization: Token or X-Api-Key")


def _presented(headers: Iterable[Header]) -> Iterator[bytes]:
    for name, value in headers:
        if name == b"x-api-key":
            yield value.strip()
        elif name == b"authorization" and value.strip():
            scheme, *key = value.split(maxsplit=1)
            if scheme.lower() in (b"bearer", b"token") and key:
                yield key[0].strip()


class Slots:
    """At most ``limit`` requests at a time. For one event loop: no lock, because nothing here awaits."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.taken = 0

    @contextmanager
    def take(self) -> Iterator[None]:
        """Hold a slot. Raises ``TooManyRequests`` at once if none is free."""
        if self.taken >= self.limit:
            raise TooManyRequests("too many requests in flight, send it again later or raise MEMSERVER_MAX_IN_FLIGHT")
        self.taken += 1
        try:
            yield
        finally:
            self.taken -= 1


async def read_body(headers: Iterable[Header], chunks: AsyncIterator[bytes], limit: int) -> bytes:
    """The whole body, at most ``limit`` bytes. Raises ``BodyTooLarge`` as soon as its size is known to be over, ``Stalled``."""
    declared = dict(headers).get(b"content-length", b"")
    if declared.isdigit() and int(declared) > limit:
        raise _too_large(limit)
    size, body = 0, []
    async for chunk in _unstalled(chunks):
        size += len(chunk)
        if size > limit:
            raise _too_large(limit)
        body.append(chunk)
    return b"".join(body)


async def _unstalled(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same chunks. Raises ``Stalled`` where the next one does not come: a dead client must not keep its slot."""
    while True:
        try:
            with anyio.fail_after(STALL_SECONDS):
                chunk = await anext(chunks)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise Stalled(f"the body stopped coming for {STALL_SECONDS} seconds, send it again") from None
        yield chunk


def _too_large(limit: int) -> BodyTooLarge:
    return BodyTooLarge(f"the body is over {limit} bytes, split it or raise MEMSERVER_MAX_BODY_MB")


async def drain(chunks: AsyncIterator[bytes]) -> None:
    """Discard what is still being sent, within bounds.

    Most clients send all of a body before they read the answer: closing on them would show as a reset, not as an answer.
    """
    size = 0
    with anyio.move_on_after(DRAIN_SECONDS):
        async for chunk in chunks:
            size += len(chunk)
            if size > DRAIN_BYTES:
                return
