"""A server under test over HTTP. Waits out 429 and 503 as the platform does; ignores proxy variables."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx

from memserver.errors import MemserverError

ATTEMPTS = 5
LONGEST_WAIT = 60  # seconds; the platform honours no longer Retry-After


class Unreachable(MemserverError):
    """No connection can be made to the server."""


class NoAnswer(MemserverError):
    """A connection was made, but the answer did not come, or not in time."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where the server is. ``timeout``: seconds that an answer may stand still. Without a ``key`` none is sent."""

    url: str
    key: str = field(default="", repr=False)
    add_path: str = "/add"
    search_path: str = "/search"
    health_path: str = "/health"
    timeout: float = 60.0


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer; ``json`` is None where the body is no JSON."""

    status: int
    text: str = field(repr=False)
    json: Any = field(repr=False)
    seconds: float

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300


class Client:
    """The calls of the contract, for several threads. Every call raises ``Unreachable`` or ``NoAnswer``."""

    def __init__(self, target: Target, transport: httpx.BaseTransport | None = None) -> None:
        self.key = target.key
        self._target = target
        self._auth = {"Authorization": f"Bearer {target.key}"} if target.key else {}
        limits = httpx.Limits(max_connections=None)
        try:
            self._http = httpx.Client(base_url=target.url, limits=limits, trust_env=False, transport=transport)
        except httpx.InvalidURL:
            raise Unreachable("the address is none, give one like http://127.0.0.1:8000") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._http.close()

    def add(self, body: object, auth: Mapping[str, str] | None = None) -> Reply:
        """``body`` is sent as JSON, or as it is if it is bytes; ``auth`` are headers instead of the usual one."""
        return self._request("POST", self._target.add_path, encoded(body), self._auth if auth is None else auth)

    def search(self, body: object, auth: Mapping[str, str] | None = None) -> Reply:
        """As ``add``."""
        return self._request("POST", self._target.search_path, encoded(body), self._auth if auth is None else auth)

    def health(self, timeout: float | None = None) -> Reply:
        """Without a key, as the platform asks; ``timeout`` in seconds instead of the usual one."""
        return self._request("GET", self._target.health_path, b"", {}, self._target.timeout if timeout is None else timeout)

    def delete(self, user_id: str) -> Reply:
        """Not in the contract: DELETE /users/{user_id}, for servers that have it."""
        return self._request("DELETE", f"/users/{quote(user_id, safe='')}", b"", self._auth)

    def _request(self, method: str, path: str, body: bytes, auth: Mapping[str, str], timeout: float | None = None) -> Reply:
        headers = [(b"Content-Type", b"application/json"), *((name.encode(), value.encode()) for name, value in auth.items())]
        seconds = self._target.timeout if timeout is None else timeout
        for attempt in range(1, ATTEMPTS + 1):
            start = time.monotonic()
            try:
                response = self._http.request(method, path, content=body, headers=headers, timeout=seconds)
            except (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol) as error:
                raise Unreachable(f"no connection ({type(error).__name__}): is the server running at this address?") from None
            except httpx.RequestError as error:
                raise NoAnswer(f"no answer to {method} ({type(error).__name__}, {seconds:g} s allowed)") from None
            wait = response.headers.get("retry-after", "")
            if attempt == ATTEMPTS or response.status_code not in (429, 503) or not wait.isdecimal():
                break
            time.sleep(min(int(wait), LONGEST_WAIT))
        return Reply(response.status_code, response.text, _parsed(response.content), time.monotonic() - start)


def encoded(body: object) -> bytes:
    """JSON in plain UTF-8; only lone surrogates, which UTF-8 can't carry, are escaped."""
    if isinstance(body, bytes):
        return body
    # backslashreplace writes a surrogate as \udxxx, the very escape of JSON
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "backslashreplace")


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None
