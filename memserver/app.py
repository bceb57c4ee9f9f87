"""The HTTP edge: routes, the error table, and a thread for each request in flight. The only user of FastAPI."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from threading import Lock
from typing import Protocol

import orjson
from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, FastAPI, Request, Response
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from memserver import __version__, openapi
from memserver.contract import read_add, read_search, search_response
from memserver.errors import BadRequest, BodyTooLarge, ConfigError, Conflict, Stalled, TooManyRequests, Unauthorized, Unavailable
from memserver.guards import Slots, authorize, drain, read_body
from memserver.rounds import repeating
from memserver.telemetry import CONTENT_TYPE, NOBODY, Exchange, Operation, Telemetry
from memserver.types import AddRequest, Deleted, Hit, SearchRequest

LARGE_BODY = 4 * 2**20  # bytes; reading one as JSON can take twenty times that in memory, so they are read one by one

SERVED = "POST /add, POST /search, DELETE /users/{user_id} and GET /health"

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

    def add(self, request: AddRequest) -> bool:
        """Returns when the Add is durable and searchable; False for a replay. Raises ``Conflict``, ``Unavailable``."""
        ...

    def search(self, request: SearchRequest) -> list[Hit]:
        """At most ``top_k`` hits, best first. Raises ``Unavailable``."""
        ...

    def delete_user(self, user_id: str) -> Deleted:
        """Returns when nothing of the user can be found any more. Raises ``Unavailable``."""
        ...

    def tidy(self) -> None:
        """Run in a thread at the start and every hour; what it raises is logged."""

    def describe(self) -> dict[str, object]:
        """What ``/health`` tells: version, embedder, model, dimension, legs, ... as JSON values."""
        ...

    def close(self) -> None: ...


class AnyText(PathConvertor):
    """A path parameter of any characters; Starlette's own ends before a line break, and would name another user."""

    regex = "(?s:.+)"


register_url_convertor("text", AnyText())

Work = Callable[[bytes, Exchange], bytes]
"""The body of a request -> that of its answer; run in a thread, it notes in the Exchange what it learns."""


def create_app(
    engine: Engine,
    *,
    api_keys: Sequence[str] = (),
    max_body_bytes: int = 42 * 2**20,
    max_in_flight: int = 256,
    telemetry: Telemetry | None = None,
    serve_metrics: bool = True,
) -> FastAPI:
    """The server of ``engine``, which it closes at shutdown. Without ``api_keys`` it is open to everybody.

    ``telemetry`` follows the requests; ``serve_metrics`` has it answer at ``/metrics``, under the same keys.
    Raises ``ConfigError`` for an empty key.
    """
    if "" in api_keys:
        raise ConfigError("an API key is empty, remove it or give it a value")
    keys = tuple(key.encode("utf-8", "surrogateescape") for key in api_keys)
    observer = telemetry or Telemetry()
    slots = Slots(max_in_flight)
    large_bodies = Lock()
    threads = CapacityLimiter(max_in_flight)
    health_body = orjson.dumps({"status": "ok", "auth": "keys" if keys else "open"} | engine.describe())

    async def respond(request: Request, operation: Operation, work: Work) -> Response:
        with observer.follow(operation) as exchange:
            response = await answered(request, exchange, work)
            exchange.status = response.status_code
            return response

    async def answered(request: Request, exchange: Exchange, work: Work) -> Response:
        headers, chunks = request.scope["headers"], request.stream()
        try:
            authorize(headers, keys)
            with slots.take():
                body = await read_body(headers, chunks, max_body_bytes)
                exchange.bytes_in = len(body)
                return _json_response(await to_thread.run_sync(work, body, exchange, limiter=threads))
        except ClientDisconnect:
            return Response(status_code=NOBODY)  # nobody is there to read it
        except Exception as error:  # nothing may reach uvicorn's log, which would print the text of the exception
            exchange.error = error
            await _drain(chunks)
            return _problem(error)

    def run_add(body: bytes, exchange: Exchange) -> bytes:
        with large_bodies if len(body) > LARGE_BODY else nullcontext():
            request, answer = read_add(body)
        exchange.user_id, exchange.messages = request.user_id, len(request.messages)
        exchange.replay = not engine.add(request)
        return answer

    def run_search(body: bytes, exchange: Exchange) -> bytes:
        request = read_search(body)
        exchange.user_id = request.user_id
        hits = engine.search(request)
        exchange.hits = len(hits)
        return search_response(hits)

    def run_delete(user_id: str, _: bytes, exchange: Exchange) -> bytes:
        exchange.user_id = user_id
        deleted = engine.delete_user(user_id)
        exchange.messages = deleted.messages
        return orjson.dumps({"deleted": deleted.messages, "wiped": deleted.wiped})

    async def add(request: Request) -> Response:
        """Store messages; answers when they are durable and searchable."""
        return await respond(request, "add", run_add)

    async def search(request: Request) -> Response:
        """The stored messages of one user that fit a query best."""
        return await respond(request, "search", run_search)

    async def delete_user(request: Request) -> Response:
        """Delete all of a user's data."""
        return await respond(request, "delete", partial(run_delete, request.path_params["user_id"]))

    async def health() -> Response:
        """What this server is; touches neither the model nor the database."""
        with observer.follow("health") as exchange:
            exchange.status = 200
            return _json_response(health_body)

    async def metrics(request: Request) -> Response:
        try:
            authorize(request.scope["headers"], keys)
        except Unauthorized as error:
            return _problem(error)
        return Response(await to_thread.run_sync(observer.exposition), media_type=CONTENT_TYPE)

    async def routing_problem(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        with observer.follow("unknown") as exchange:
            exchange.status = error.status_code
            reason = f"{error.detail}: served are {SERVED}, also under /v1"
            return _json_response(orjson.dumps({"detail": {"reason": reason}}), error.status_code, dict(error.headers or {}))

    routes = APIRouter()
    routes.add_api_route("/add", add, methods=["POST"], **openapi.ADD)
    routes.add_api_route("/search", search, methods=["POST"], **openapi.SEARCH)
    routes.add_api_route("/users/{user_id:text}", delete_user, methods=["DELETE"], **openapi.DELETE)
    routes.add_api_route("/health", health, methods=["GET"], **openapi.HEALTH)
    routes.add_api_route("/health", health, methods=["HEAD"], include_in_schema=False)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with repeating(engine.tidy):
            yield
        await to_thread.run_sync(engine.close)

    app = FastAPI(title="memserver", version=__version__, lifespan=lifespan)
    app.include_router(routes)
    app.include_router(routes, prefix="/v1", include_in_schema=False)
    if serve_metrics:
        app.add_api_route("/metrics", metrics, methods=["GET"], include_in_schema=False)
    app.add_exception_handler(HTTPException, routing_problem)
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
    """An error as its response."""
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
    return _json_response(orjson.dumps({"detail": detail}), status, headers)
