"""What tests of embedders share: MiniLM loaded once, and an embeddings endpoint on loopback."""

from __future__ import annotations

import json
import random
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from memserver.embedders.hashing import Hashing
from memserver.embedders.minilm import MiniLM

KEY = "sk-a-secret"


@cache
def loaded_minilm() -> MiniLM:
    embedder = MiniLM()
    embedder.load()
    return embedder


@dataclass(frozen=True)
class Answer:
    """A planned answer: ``status`` 0 hangs up, 200 without a ``body`` gives real vectors."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: object = None


@dataclass
class Endpoint:
    """Answers POST with the planned answers, then with vectors: those of Hashing, three times too long, in random order."""

    url: str = ""
    planned: deque[Answer] = field(default_factory=deque)
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    @staticmethod
    def vectors(request: dict[str, Any]) -> dict[str, Any]:
        vectors = Hashing(request["dimensions"]).embed(request["input"]) * 3
        items = [{"index": index, "embedding": vector.tolist()} for index, vector in enumerate(vectors)]
        return {"data": random.sample(items, len(items))}


@contextmanager
def serving() -> Iterator[Endpoint]:
    endpoint = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            endpoint.requests.append({"path": self.path} | request)
            endpoint.headers.append({name.lower(): value for name, value in self.headers.items()})
            answer = endpoint.planned.popleft() if endpoint.planned else Answer()
            if answer.status == 0:
                return
            body = Endpoint.vectors(request) if answer.body is None and answer.status == 200 else answer.body
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    endpoint.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
