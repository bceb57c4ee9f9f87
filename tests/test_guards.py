"""Keys, slots and body sizes, without a server."""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator
from contextlib import nullcontext
from itertools import product

import anyio
import pytest

from memserver import guards
from memserver.errors import BodyTooLarge, Stalled, TooManyRequests, Unauthorized
from memserver.guards import Header, Slots, authorize, drain, read_body

KEYS = (b"first", "schlüssel-钥匙".encode())


async def stream(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    ("name", "scheme"),
    [
        (b"authorization", b"Bearer "),
        (b"authorization", b"Bearer\t"),
        (b"authorization", b"bearer "),
        (b"authorization", b"Token "),
        (b"authorization", b"TOKEN   "),
        (b"x-api-key", b""),
        (b"x-api-key", b" "),
    ],
)
def test_every_key_passes_in_every_way(key: bytes, name: bytes, scheme: bytes) -> None:
    authorize([(b"host", b"h"), (name, scheme + key)], KEYS)


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [(b"x-api-key", b"")],
        [(b"x-api-key", b"firs")],
        [(b"x-api-key", b"FIRST")],
        [(b"x-api-key", b"Bearer first")],
        [(b"authorization", b"first")],
        [(b"authorization", b"Basic first")],
        [(b"authorization", b"Bearer")],
        [(b"authorization", b"Bearer first second")],
        [(b"cookie", b"first")],
    ],
)
def test_a_missing_or_wrong_key_is_refused(headers: list[Header]) -> None:
    with pytest.raises(Unauthorized):
        authorize(headers, KEYS)


@pytest.mark.parametrize("given", [[b"first"], [b"wrong"], [b"first", b"wrong"], [b"wrong", KEYS[1]]])
def test_every_given_key_is_compared_with_every_accepted_one_in_constant_time(
    given: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Comparer:
        """Stands for the module ``hmac``; any other way to compare would leave its record short."""

        def compare_digest(self, left: bytes, right: bytes) -> bool:
            compared.append((left, right))
            return hmac.compare_digest(left, right)

    compared: list[tuple[bytes, bytes]] = []
    monkeypatch.setattr(guards, "hmac", Comparer())
    with nullcontext() if set(given) & set(KEYS) else pytest.raises(Unauthorized):
        authorize([(b"x-api-key", key) for key in given], KEYS)
    assert compared == list(product(given, KEYS))


def test_a_body_that_stops_coming_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def stalling() -> AsyncIterator[bytes]:
        yield b"{"
        await anyio.sleep_forever()

    async def read() -> bytes:
        return await read_body([], stalling(), 100)

    monkeypatch.setattr(guards, "STALL_SECONDS", 0.01)
    with pytest.raises(Stalled):
        anyio.run(read)


def test_one_right_key_beside_a_wrong_one_passes() -> None:
    authorize([(b"authorization", b"Bearer of-a-proxy"), (b"x-api-key", b"first")], KEYS)


def test_without_keys_everything_passes() -> None:
    authorize([], ())


def test_slots_are_limited_and_come_back_also_after_an_error() -> None:
    slots = Slots(1)
    with slots.take(), pytest.raises(TooManyRequests), slots.take():
        pass
    with pytest.raises(ZeroDivisionError), slots.take():
        raise ZeroDivisionError
    with slots.take():
        assert slots.taken == 1
    assert slots.taken == 0


def test_a_body_up_to_the_limit_is_read_whole() -> None:
    assert anyio.run(read_body, [(b"content-length", b"4")], stream(b"ab", b"cd"), 4) == b"abcd"


@pytest.mark.parametrize("headers", [[], [(b"content-length", b"4")], [(b"content-length", b"odd")]])
def test_a_body_that_grows_over_the_limit_is_refused(headers: list[Header]) -> None:
    with pytest.raises(BodyTooLarge):
        anyio.run(read_body, headers, stream(b"abc", b"de"), 4)


def test_a_body_declared_over_the_limit_is_refused_before_it_is_read() -> None:
    chunks = stream(b"unread")
    with pytest.raises(BodyTooLarge):
        anyio.run(read_body, [(b"content-length", b"5")], chunks, 4)
    assert anyio.run(anext, chunks) == b"unread"


def test_draining_reads_to_the_end_or_to_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    async def rest(*sent: bytes) -> list[bytes]:
        chunks = stream(*sent)
        await drain(chunks)
        return [chunk async for chunk in chunks]

    monkeypatch.setattr(guards, "DRAIN_BYTES", 4)
    assert anyio.run(rest, b"ab", b"cd") == []
    assert anyio.run(rest, b"abc", b"de", b"unread") == [b"unread"]


def test_draining_a_silent_client_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent() -> AsyncIterator[bytes]:
        await anyio.sleep_forever()
        yield b""

    monkeypatch.setattr(guards, "DRAIN_SECONDS", 0)
    anyio.run(drain, silent())
