"""An OpenAI-compatible embeddings endpoint on loopback that can be made to fail in the ways in which real ones do."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Thread
from typing import Any

from memserver.embedders.hashing import Hashing

DIMENSION = 256
HASHING = Hashing(DIMENSION)
TIMEOUT = 1.0  # seconds that the server under trial waits for an answer

Vectors = list[list[float]]

SPOILED: Mapping[str, Callable[[Vectors], Vectors]] = {
    "works": lambda vectors: vectors,
    "gives NaN": lambda vectors: [[float("nan")] * DIMENSION for _ in vectors],
    "gives zeros": lambda vectors: [[0.0] * DIMENSION for _ in vectors],
    "gives another dimension": lambda vectors: [vector[1:] for vector in vectors],
    "gives too few": lambda vectors: vectors[1:],
    "gives too many": lambda vectors: [*vectors, *vectors],
}
"""What becomes of the vectors that it gives."""

FAILS = "fails"
HANGS = "hangs"
FAULTS = (FAILS, HANGS, *(name for name in SPOILED if name != "works"))


class Endpoint:
    """``behaviour`` is "works" or one of FAULTS; while it hangs, calls wait until another one is set."""

    def __init__(self) -> None:
        self.url = ""
        self._behaviour = "works"
        self._waiting = 0
        self._news = Condition()

    def settings(self, **more: str) -> dict[str, str]:
        """What a server needs to use it, without the prefix MEMSERVER_."""
        return {
            "EMBEDDER": "openai",
            "OPENAI_BASE_URL": self.url,
            "OPENAI_KEY_VARIABLE": "",
            "OPENAI_DIMENSIONS": str(DIMENSION),
            "OPENAI_ATTEMPTS": "1",
            **more,
        }

    def behave(self, behaviour: str) -> None:
        with self._news:
            self._behaviour = behaviour
            self._news.notify_all()

    def release(self) -> None:
        """Work, also for the calls that wait."""
        self.behave("works")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let every call wait; released at the latest at the end of the block."""
        self.behave(HANGS)
        try:
            yield
        finally:
            self.release()

    def await_waiting(self, calls: int, seconds: float) -> bool:
        """Wait until so many calls wait here; False if that takes longer."""
        with self._news:
            return self._news.wait_for(lambda: self._waiting >= calls, seconds)

    def answer(self, texts: Sequence[str]) -> tuple[int, Any]:
        """Status and body for these texts."""
        with self._news:
            self._waiting += 1
            self._news.notify_all()
            self._news.wait_for(lambda: self._behaviour != HANGS)
            self._waiting -= 1
            behaviour = self._behaviour
        if behaviour == FAILS:
            return 500, {"error": "this endpoint fails"}
        vectors = SPOILED[behaviour](HASHING.embed(texts).tolist())
        return 200, {"data": [{"index": place, "embedding": vector} for place, vector in enumerate(vectors)]}


@contextmanager
def serving() -> Iterator[Endpoint]:
    """An endpoint that works, until the end of the block."""
    endpoint = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, body = endpoint.answer(request["input"])
            try:
                self.send_response(status)
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())
            except ConnectionError:
                return  # who asked has given up

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    endpoint.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield endpoint
    finally:
        endpoint.release()
        server.shutdown()
        thread.join()
        server.server_close()
