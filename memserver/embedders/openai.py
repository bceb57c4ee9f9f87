"""Any OpenAI-compatible ``/embeddings`` endpoint. The defaults fit text-embedding-v4."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from hashlib import sha256
from time import sleep

import httpx
import numpy as np

from memserver.embedders.windows import characters, windows
from memserver.errors import ConfigError, EmbedderError, EmbedderRefused
from memserver.types import FloatArray

OVERLAP = 200  # characters
LONGEST_WAIT = 60.0  # seconds
RETRIED = frozenset({408, 409, 425, 429})  # and all of 5xx
REFUSED = {400, 413, 422}  # the texts' fault, so another call may succeed
ADVICE = {
    400: "check model, dimensions and batch_size",
    401: "check the API key",
    403: "check the API key and what it is allowed to use",
    404: "check base_url and model",
    413: "lower batch_size or window_chars",
    422: "check model, dimensions and batch_size",
    429: "the rate or the credit is used up; wait, lower concurrency or raise the quota",
}


@dataclass(frozen=True)
class OpenAI:
    """Vectors from ``POST {base_url}/embeddings``, normalised to unit length.

    base_url: where the API starts, default DashScope's compatible mode, https://dashscope.aliyuncs.com/compatible-mode/v1.
    model: the model's name at the endpoint, default text-embedding-v4.
    dimensions: length of a vector, default 1024.
    send_dimensions: ask the endpoint for that length, default true; turn off where it refuses the parameter.
    batch_size: texts a call, default 10, the most that text-embedding-v4 takes.
    key_variable: the environment variable that holds the API key, default DASHSCOPE_API_KEY; empty: send none.
    window_chars: characters of a window with its prefix, default 2000.
    concurrency: calls at once, default 8.
    timeout: seconds that a call may stand still, default 60.
    attempts: calls before giving up, default 5, the waits between them 1, 2, 4, 8 s or what Retry-After says, at most 60 s.
    """

    base_url: str = "https://dashscope.aliyuncs.com/compatible-mode/v1"
    model: str = "text-embedding-v4"
    dimensions: int = 1024
    send_dimensions: bool = True
    batch_size: int = 10
    key_variable: str = "DASHSCOPE_API_KEY"
    window_chars: int = 2000
    concurrency: int = 8
    timeout: float = 60.0
    attempts: int = 5
    _client: httpx.Client | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        if min(self.dimensions, self.batch_size, self.concurrency, self.timeout, self.attempts) <= 0 or self.window_chars < 2:
            raise ValueError("dimensions, batch_size, concurrency, timeout, attempts must be above 0, window_chars above 1")
        if not self.base_url.startswith(("http://", "https://")):
            raise ValueError("base_url must start with http:// or https://")

    @property
    def dimension(self) -> int:
        return self.dimensions

    @property
    def fingerprint(self) -> str:
        """Of the endpoint, the model's name and the dimension: nobody sees the weights themselves."""
        return sha256(f"{self._url}\n{self.model}\n{self.dimensions}".encode()).hexdigest()

    def load(self) -> None:
        """Read the key and make the client; no call is made. Raises ``ConfigError`` if the key is missing."""
        if self._client is None:
            limits = httpx.Limits(max_connections=self.concurrency, max_keepalive_connections=self.concurrency)
            object.__setattr__(self, "_client", httpx.Client(headers=self._headers(), timeout=self.timeout, limits=limits))

    def close(self) -> None:
        """Close the connections; ``load`` opens them again."""
        if self._client is not None:
            self._client.close()
            object.__setattr__(self, "_client", None)

    def coverage(self, text: str) -> float:
        """All scripts alike."""
        return 1.0

    def windows(self, text: str, prefix: str) -> list[tuple[int, int]]:
        """Windows of at most ``window_chars`` characters with ``prefix``, cut at words where there are some near.

        A byte-level token holds at least one byte and a character at most 4 bytes of UTF-8, so the default needs at most
        2,000 x 4 = 8,000 tokens; text-embedding-v4 takes 8,192. A prefix longer than half a window is not made room for.
        """
        capacity = max(self.window_chars - len(prefix), self.window_chars // 2)
        return windows(text, characters, capacity, OVERLAP)

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """Unit vectors, (len(texts), dimension), from one call. Raises ``EmbedderError`` when all attempts failed."""
        client = self._client
        if client is None:
            raise EmbedderError("openai: the client is not ready; call load() first")
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        body: dict[str, object] = {"model": self.model, "input": list(texts)}
        if self.send_dimensions:
            body["dimensions"] = self.dimensions
        return self._vectors(retrying(lambda: client.post(self._url, json=body), self.attempts), len(texts))

    @property
    def _url(self) -> str:
        return f"{self.base_url.rstrip('/')}/embeddings"

    def _headers(self) -> dict[str, str]:
        if not self.key_variable:
            return {}
        key = os.environ.get(self.key_variable, "").strip()
        if not key or not key.isascii() or not key.isprintable():  # a header error of the client would show the key
            raise ConfigError(f"openai: set the environment variable {self.key_variable} to the API key")
        return {"Authorization": f"Bearer {key}"}

    def _vectors(self, response: httpx.Response, count: int) -> FloatArray:
        vectors = np.full((count, self.dimensions), np.nan, dtype=np.float32)
        try:
            items = response.json()["data"]
            for item in items:
                vectors[range(count)[item["index"]]] = np.asarray(item["embedding"], dtype=np.float32).reshape(self.dimensions)
        except (ValueError, TypeError, KeyError, IndexError):
            raise EmbedderError(f"openai: the answer is no list of vectors of dimension {self.dimensions}; check model") from None
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        if len(items) != count or not (np.isfinite(norms) & (norms > 0)).all():
            raise EmbedderError("openai: the answer has a wrong number of embeddings, or one that is no direction; check model")
        return np.asarray(vectors / norms, dtype=np.float32)


def retrying(post: Callable[[], httpx.Response], attempts: int) -> httpx.Response:
    """The first successful response. Network errors, 408, 409, 425, 429 and 5xx are tried again, the rest fails at once.

    Raises ``EmbedderError``, ``EmbedderRefused`` if the texts are at fault, with the status and advice only: an answer's body
    may repeat the texts, an error's cause the key.
    """
    failure, refused = "", False
    for attempt in range(1, attempts + 1):
        retry_after = ""
        try:
            response = post()
        except httpx.RequestError as error:
            failure = f"openai: no answer from the endpoint ({type(error).__name__}); check base_url and the network"
        else:
            if response.is_success:
                return response
            status = response.status_code
            failure = f"openai: the endpoint answered {status}; {ADVICE.get(status, 'try again later, or check base_url')}"
            refused = status in REFUSED
            if status not in RETRIED and status < 500:
                break
            retry_after = response.headers.get("Retry-After", "")
        if attempt < attempts:
            sleep(wait_after(attempt, retry_after))
    raise EmbedderRefused(failure) if refused else EmbedderError(failure)


def wait_after(attempt: int, retry_after: str) -> float:
    """Seconds to wait after attempt 1, 2, ...: what ``Retry-After`` says, else 2^(attempt - 1) less up to half, at most 60."""
    asked = _seconds(retry_after)
    if asked is None:
        asked = 2.0 ** (attempt - 1) * random.uniform(0.5, 1.0)  # jitter, so that many callers don't come back at once
    return min(max(asked, 0.0), LONGEST_WAIT)


def _seconds(header: str) -> float | None:
    """Seconds from now, read from a number or an HTTP date (RFC 9110, 10.2.3); None if there is none."""
    if header.strip().isdecimal():
        return float(header)
    try:
        return (parsedate_to_datetime(header).replace(tzinfo=UTC) - datetime.now(UTC)).total_seconds()
    except ValueError:
        return None
