"""The HTTP edge: routes, the error table, and a thread for each request in flight. The only user of FastAPI."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from threading import Lock
from traceback import walk_tb
from typing import Protocol

import orjson
from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from memserver import __version__, openapi
from memserver.contract import read_add, read_search, search_response
from memserver.errors import BadRequest, BodyTooLarge, ConfigError, Conflict, Stalled, TooManyRequests, Unauthorized, Unavailable
from memserver.guards import Slots, authorize, drain, read_body
from memserver.types import AddRequest, Hit, SearchRequest

LARGE_BODY = 4 * 2**20  # bytes; reading one as JSON can take twenty times that in memory, so they are read one by one

logger = logging.getLogger(__name__)

STATUS: dict[type[Exception], int] = {
    BadRequest: 422,
    Unauthorized: 401,
    Stalled: 408,
    Conflict: 409,
    BodyTooLarge: 413,
    TooManyRequests: 429,
    Unavailable: 503,
}


class Engine(Protocol):
    """What is served. ``add`` and ``search`` are called from many threads at once."""

    def add(self, request: AddRequest) -> None:
        """Returns when the Add is durable and searchable; a replay writes nothing. Raises ``Conflict``, ``Unavailable``."""

    def search(self, request: SearchRequest) -> list[Hit]:
        """At most ``top_k`` hits, best first. Raises ``Unavailable``."""
        ...

    def describe(self) -> dict[str, object]:
        """What ``/health`` tells: version, embedder, model, dimension, legs, ... as JSON values."""
        ...

    def close(self) -> None: ...


def create_app(
    engine: Engine, *, api_keys: Sequence[str] = (), max_body_bytes: int = 42 * 2**20, max_in_flight: int = 256
) -> FastAPI:
    """The server of ``engine``, which it closes at shutdown. Without ``api_keys`` it is open to everybody.

    Raises ``ConfigError`` for an empty key.
    """
    if "" in api_keys:
        raise ConfigError("an API key is empty, remove it or give it a value")
    keys = tuple(key.encode("utf-8", "surrogateescape") for key in api_keys)
    slots = Slots(max_in_flight)
    large_bodies = Lock()
    threads = CapacityLimiter(max_in_flight)
    health_body = orjson.dumps({"status": "ok", "auth": "keys" if keys else "open"} | engine.describe())

    async def respond(request: Request, work: Callable[[bytes], bytes]) -> Response:
        headers, chunks = request.scope["headers"], request.stream()
        try:
            authorize(headers, keys)
            with slots.take():
                body = await read_body(headers, chunks, max_body_bytes)
                return _json_response(await to_thread.run_sync(work, body, limiter=threads))
        except ClientDisconnect:
            return Response(status_code=408)  # nobody is there to read it
        except Exception as error:  # nothing may reach uvicorn's log, which would print the text of the exception
            await _drain(chunks)
            return _problem(error)

    def run_add(body: bytes) -> bytes:
        with large_bodies if len(body) > LARGE_BODY else nullcontext():
            request, answer = read_add(body)
        engine.add(request)
        return answer

    def run_search(body: bytes) -> bytes:
        return search_response(engine.search(read_search(body)))

    async def add(request: Request) -> Response:
        """Store messages; answers when they are durable and searchable."""
        return await respond(request, run_add)

    async def search(request: Request) -> Response:
        """The stored messages of one user that fit a query best."""
        return await respond(request, run_search)

    async def health() -> Response:
        """What this server is; touches neither the model nor the database."""
        return _json_response(health_body)

    routes = APIRouter()
    routes.add_api_route("/add", add, methods=["POST"], **openapi.ADD)
    routes.add_api_route("/search", search, methods=["POST"], **openapi.SEARCH)
    routes.add_api_route("/health", health, methods=["GET"], **openapi.HEALTH)
    routes.add_api_route("/health", health, methods=["HEAD"], include_in_schema=False)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await to_thread.run_sync(engine.close)

    app = FastAPI(title="memserver", version=__version__, lifespan=lifespan)
    app.include_router(routes)
    app.include_router(routes, prefix="/v1", include_in_schema=False)
    app.add_exception_handler(HTTPException, _routing_problem)
    app.openapi()["components"]["schemas"] |= openapi.request_schemas()  # FastAPI keeps this document and serves it
    return app


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    try:
        await drain(chunks)
    except ClientDisconnect:
        return


def _json_response(body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(body, status, headers, media_type="application/json")


def _problem(error: Exception) -> Response:
    """An error as its response, and as one line of the log that carries no content."""
    status = next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), 500)
    detail, headers = {"reason": str(error)}, {}
    match error:
        case BadRequest():
            detail["field"] = error.field
        case Unauthorized():
            headers["WWW-Authenticate"] = "Bearer"
        case TooManyRequests() | Unavailable():
            headers["Retry-After"] = str(error.retry_after)
    if status == 500:
        detail["reason"] = "internal error, the server's log has a line with its place"
        logger.error("500 %s at %s", type(error).__name__, _place(error))
    else:
        logger.warning("%d %s: %s", status, type(error).__name__, error)
    return _json_response(orjson.dumps({"detail": detail}), status, headers)


def _place(error: Exception) -> str:
    """The calls that led to ``error``, outermost first, as names and lines of code: no values, no text."""
    calls = ((frame.f_globals["__name__"], frame.f_code.co_qualname, line) for frame, line in walk_tb(error.__traceback__))
    return " > ".join(f"{module}.{name}:{line}" for module, name, line in calls)


async def _routing_problem(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    reason = f"{error.detail}: served are POST /add, POST /search and GET /health, also under /v1"
    return _json_response(orjson.dumps({"detail": {"reason": reason}}), error.status_code, dict(error.headers or {}))
