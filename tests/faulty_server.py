"""A correct server with one fault planted at a time: what preflight must find, and a catalogue of mistakes seen in servers."""

from __future__ import annotations

import asyncio
import hashlib
import json
import posixpath
import unicodedata
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

KEY = "schlüssel-1"
AUTH = (b"x-api-key", KEY.encode())
IDS = ("request_id", "user_id", "session_id")

Body = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """A request."""

    method: str
    path: str
    headers: tuple[tuple[bytes, bytes], ...]
    content: bytes

    @property
    def json(self) -> Body:
        """The body as an object, {} for what is none."""
        try:
            value = json.loads(self.content)
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}

    @property
    def key(self) -> str:
        """The key that was sent, in whichever header."""
        headers = dict(self.headers)
        return (headers.get(b"x-api-key") or headers.get(b"authorization", b"").partition(b" ")[2]).decode()

    def with_key(self) -> Call:
        return replace(self, headers=(*(pair for pair in self.headers if pair[0] not in (b"authorization", b"x-api-key")), AUTH))


@dataclass(frozen=True)
class Answer:
    status: int
    content: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ((b"content-type", b"application/json"),)

    @property
    def json(self) -> Any:
        return json.loads(self.content)


Forward = Callable[[Call], Awaitable[Answer]]
Fault = Callable[[Call, Forward], Awaitable[Answer]]


@dataclass
class FaultyServer:
    """``app`` behind ``fault``, which may be exchanged while it serves."""

    app: ASGIApp
    fault: Fault | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self.fault is None:
            await self.app(scope, receive, send)
            return
        content = b""
        while True:
            message = await receive()
            content += message.get("body", b"")
            if not message.get("more_body"):
                break
        call = Call(scope["method"], scope["path"], tuple(map(tuple, scope["headers"])), content)

        async def forward(call: Call) -> Answer:
            return await _asked(self.app, scope, call)

        answer = await self.fault(call, forward)
        await send({"type": "http.response.start", "status": answer.status, "headers": answer.headers})
        await send({"type": "http.response.body", "body": answer.content})


async def _asked(app: ASGIApp, scope: Scope, call: Call) -> Answer:
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": call.content, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [pair for pair in call.headers if pair[0] != b"content-length"]
    await app({**scope, "method": call.method, "path": call.path, "headers": headers}, receive, send)
    return Answer(sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:]))


# --- what faults are made of ------------------------------------------------------------------------------------------


def dumped(value: object) -> bytes:
    return json.dumps(value).encode()


def problem(status: int, reason: str = "no") -> Answer:
    return Answer(status, dumped({"detail": {"reason": reason}}))


def refusing(path: str, status: int, when: Callable[[Body], bool]) -> Fault:
    """A server that answers some readable bodies with an error."""

    async def fault(call: Call, forward: Forward) -> Answer:
        return problem(status) if call.path == path and when(call.json) else await forward(call)

    return fault


def reading(path: str, edit: Callable[[Body], Body]) -> Fault:
    """A server that works with another body than it got, and echoes the ids that it got."""

    async def fault(call: Call, forward: Forward) -> Answer:
        if path not in ("*", call.path) or "user_id" not in call.json:
            return await forward(call)
        answer = await forward(replace(call, content=dumped(call.json | edit(call.json))))
        if call.path == "/add" and answer.status == 200:
            return Answer(200, dumped(answer.json | {name: call.json.get(name) for name in IDS}))
        return answer

    return fault


def answering(path: str, edit: Callable[[Any], Any], status: Callable[[int], bool] = (200).__eq__) -> Fault:
    """A server whose answers are wrong."""

    async def fault(call: Call, forward: Forward) -> Answer:
        answer = await forward(call)
        if path not in ("*", call.path) or not status(answer.status):
            return answer
        return replace(answer, content=dumped(edit(answer.json)))

    return fault


def listing(edit: Callable[[list[Body]], Any]) -> Fault:
    """A server whose Search returns its hits wrongly."""
    return answering("/search", lambda answer: {"data": edit(answer["data"])})


def showing(edit: Callable[[list[Body]], list[Body]]) -> Fault:
    """A server whose Search returns the parts of contents wrongly."""
    return listing(
        lambda hits: [hit | {"content": edit(hit["content"])} if isinstance(hit["content"], list) else hit for hit in hits]
    )


def adding(edit: Callable[[Body], Body | None]) -> Fault:
    """A server that keeps something else than each message that it gets."""
    return reading(
        "/add", lambda body: {"messages": [kept for message in body["messages"] if (kept := edit(message)) is not None]}
    )


def any_message(test: Callable[[Body], bool]) -> Callable[[Body], bool]:
    return lambda body: any(test(message) for message in body.get("messages") or [] if isinstance(message, dict))


def renaming(name: str, edit: Callable[[str], str]) -> Fault:
    return reading("*", lambda body: {name: edit(body[name])} if isinstance(body.get(name), str) else {})


def echoing(edit: Callable[[str], str]) -> Fault:
    return answering("/add", lambda answer: answer | {name: answer[name] and edit(answer[name]) for name in IDS})


def nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def content_has(text: str) -> Callable[[Body], bool]:
    return any_message(lambda message: text in str(message.get("content")))


# --- faults with a memory of their own --------------------------------------------------------------------------------


def indexes_late() -> Fault:
    """Answers at once, stores after the next Search of that user."""
    held: list[Call] = []

    async def fault(call: Call, forward: Forward) -> Answer:
        if call.path == "/add" and all(name in call.json for name in IDS):
            held.append(call)
            return Answer(200, dumped({"success": True} | {name: call.json[name] for name in IDS}))
        answer = await forward(call)
        if call.path == "/search":
            for late in [late for late in held if late.json["user_id"] == call.json.get("user_id")]:
                held.remove(late)
                await forward(late)
        return answer

    return fault


def filters_by_session() -> Fault:
    sessions: dict[str, object] = {}

    def edit(body: Body) -> Body:
        if "session_id" in body:
            sessions[body["user_id"]] = body["session_id"]
        return {"user_id": f"{body['user_id']}#{sessions.get(body['user_id'])}"}

    return reading("*", edit)


def has_new_ids() -> Fault:
    numbers = count()
    return listing(lambda hits: [hit | {"id": f"{hit['id']}-{next(numbers)}"} for hit in hits])


def all_alike(hits: list[Body]) -> bool:
    """Whether all hits, and the neighbours shown with them, say the same."""
    return len({line for hit in hits for line in hit["content"].split("\n")}) == 1


def rotates(hits_apply: Callable[[list[Body]], bool], first: int) -> Fault:
    """All hits but the ``first`` come in another order each time."""
    numbers = count()

    def edit(hits: list[Body]) -> list[Body]:
        scoreless = [{name: hit[name] for name in ("id", "content")} for hit in hits]
        tail = scoreless[first:]
        turned = next(numbers) % len(tail) if tail and hits_apply(hits) else 0
        return scoreless[:first] + tail[turned:] + tail[:turned]

    return listing(edit)


def stores_replays() -> Fault:
    seen: set[bytes] = set()
    numbers = count()

    def edit(body: Body) -> Body:
        known = dumped(body) in seen
        seen.add(dumped(body))
        return {"request_id": f"{body['request_id']}-{next(numbers)}"} if known else {}

    return reading("/add", edit)


def answers_replays(status: int) -> Fault:
    seen: set[bytes] = set()

    async def fault(call: Call, forward: Forward) -> Answer:
        if call.path == "/add" and call.content in seen:
            return problem(status)
        seen.add(call.content)
        return await forward(call)

    return fault


def has_global_request_ids() -> Fault:
    owners: dict[object, object] = {}

    def taken(body: Body) -> bool:
        return owners.setdefault(str(body.get("request_id")), body.get("user_id")) != body.get("user_id")

    return refusing("/add", 409, taken)


async def writes_in_spite_of_409(call: Call, forward: Forward) -> Answer:
    answer = await forward(call)
    if call.path == "/add" and answer.status == 409:
        await forward(replace(call, content=dumped(call.json | {"request_id": call.json["request_id"] + "-anyway"})))
    return answer


async def writes_before_the_key(call: Call, forward: Forward) -> Answer:
    answer = await forward(call)
    if answer.status == 401:
        await forward(call.with_key())
    return answer


async def sleeps_in_health(call: Call, forward: Forward) -> Answer:
    if call.path == "/health":
        await asyncio.sleep(1)
    return await forward(call)


async def wants_a_key_for_health(call: Call, forward: Forward) -> Answer:
    return problem(401) if call.path == "/health" and call.key != KEY else await forward(call)


async def answers_404_without_hits(call: Call, forward: Forward) -> Answer:
    answer = await forward(call)
    return problem(404) if answer.status == 200 and answer.json == {"data": []} else answer


async def answers_202(call: Call, forward: Forward) -> Answer:
    answer = await forward(call)
    return replace(answer, status=202) if call.path == "/add" and answer.status == 200 else answer


async def deletes_nothing(call: Call, forward: Forward) -> Answer:
    return Answer(200, b"{}") if call.method == "DELETE" else await forward(call)


async def crashes_without_json(call: Call, forward: Forward) -> Answer:
    return problem(500) if call.method == "POST" and not call.json else await forward(call)


async def explains_nothing(call: Call, forward: Forward) -> Answer:
    answer = await forward(call)
    return replace(answer, content=b'{"error": "no"}') if call.method == "POST" and not call.json else answer


async def repeats_the_request(call: Call, forward: Forward) -> Answer:
    answer = await forward(call)
    if answer.status != 422:
        return answer
    return replace(answer, content=dumped({"detail": answer.json["detail"] | {"input": call.content.decode("latin-1")}}))


async def repeats_the_key(call: Call, forward: Forward) -> Answer:
    answer = await forward(call)
    return problem(401, f"{call.key} is not the key") if answer.status == 401 else answer


async def ignores_x_api_key(call: Call, forward: Forward) -> Answer:
    return await forward(replace(call, headers=tuple(pair for pair in call.headers if pair[0] != b"x-api-key")))


async def answers_403(call: Call, forward: Forward) -> Answer:
    answer = await forward(call)
    return replace(answer, status=403) if answer.status == 401 else answer


async def checks_no_key(call: Call, forward: Forward) -> Answer:
    return await forward(call.with_key())


async def checks_the_beginning_of_keys(call: Call, forward: Forward) -> Answer:
    return await forward(call.with_key() if call.key and KEY.startswith(call.key) else call)


async def checks_no_key_of_searches(call: Call, forward: Forward) -> Answer:
    return await forward(call.with_key() if call.path == "/search" else call)


# --- the catalogue: what is wrong -> the fault, made anew -------------------------------------------------------------

KNOWN = {*IDS, "messages", "query", "options", "top_k"}
PART_ORDER = {"text": 0, "image_url": 1}

FAULTS: dict[str, Callable[[], Fault]] = {
    "health wants the key": lambda: wants_a_key_for_health,
    "health is slow": lambda: sleeps_in_health,
    "202 for an Add": lambda: answers_202,
    "no success in the answer": lambda: answering("/add", lambda answer: answer | {"success": "yes"}),
    "ids trimmed in the echo": lambda: echoing(str.strip),
    "ids normalized in the echo": lambda: echoing(nfc),
    "ids cut in the echo": lambda: echoing(lambda text: text[:100]),
    "indexed after the answer": indexes_late,
    "unknown fields refused in Add": lambda: refusing("/add", 422, lambda body: not body.keys() <= KNOWN),
    "unknown fields refused in Search": lambda: refusing("/search", 422, lambda body: not body.keys() <= KNOWN),
    "null session refused": lambda: refusing("/add", 422, lambda body: body.get("session_id", "") is None),
    "ten messages kept of an Add": lambda: reading("/add", lambda body: {"messages": body["messages"][:10]}),
    "top_k ignored": lambda: reading("/search", lambda _: {"top_k": 100}),
    "one hit more than top_k": lambda: reading("/search", lambda body: {"top_k": body.get("top_k", 99) + 1}),
    "missing top_k refused": lambda: refusing("/search", 422, lambda body: "top_k" not in body),
    "null instead of no hits": lambda: listing(lambda hits: hits or None),
    "404 for unknown users": lambda: answers_404_without_hits,
    "numbers as ids": lambda: listing(lambda hits: [hit | {"id": int(hit["id"], 16)} for hit in hits]),
    "new ids in each answer": has_new_ids,
    "an empty content": lambda: listing(lambda hits: [*hits, {"id": "blank", "content": " "}] if hits else hits),
    "contents as JSON": lambda: listing(lambda hits: [hit | {"content": json.dumps(hit["content"])} for hit in hits]),
    "rising scores": lambda: listing(lambda hits: [hit | {"score": float(rank)} for rank, hit in enumerate(hits)]),
    "scores as strings": lambda: listing(lambda hits: [hit | {"score": str(hit["score"])} for hit in hits]),
    "created_at as an object": lambda: listing(lambda hits: [hit | {"created_at": {"ms": 1}} for hit in hits]),
    "worst first": lambda: listing(lambda hits: [hit | {"score": None} for hit in hits[::-1]]),
    "another order each time": lambda: rotates(lambda _: True, first=1),
    "another order of ties each time": lambda: rotates(all_alike, first=0),
    "options refused": lambda: refusing("/search", 422, lambda body: "options" in body),
    "query parts refused": lambda: refusing("/search", 422, lambda body: isinstance(body.get("query"), list)),
    "500 for a lone surrogate in a query": lambda: refusing("/search", 500, lambda body: "\ud83d" in str(body.get("query"))),
    "users not told apart": lambda: renaming("user_id", lambda _: "everyone"),
    "case of users folded": lambda: renaming("user_id", str.lower),
    "users normalized": lambda: renaming("user_id", nfc),
    "users trimmed": lambda: renaming("user_id", str.strip),
    "users read as paths": lambda: renaming("user_id", posixpath.normpath),
    "sessions filter": filters_by_session,
    "400 for a blank turn": lambda: refusing("/add", 400, any_message(lambda message: str(message["content"]).strip() == "")),
    "422 past the year 2100": lambda: refusing(
        "/add", 422, any_message(lambda message: isinstance(stamp := message.get("timestamp"), int) and stamp > 4_102_444_800_000)
    ),
    "422 for a missing timestamp": lambda: refusing("/add", 422, any_message(lambda message: "timestamp" not in message)),
    "500 for a NUL byte": lambda: refusing("/add", 500, content_has("\0")),
    "500 for a lone surrogate": lambda: refusing("/add", 500, content_has("\ud83d")),
    "unknown roles refused": lambda: refusing("/add", 422, any_message(lambda message: message.get("role") != "user")),
    "null content refused": lambda: refusing("/add", 422, any_message(lambda message: message.get("content", 0) is None)),
    "content arrays refused": lambda: refusing("/add", 422, any_message(lambda message: isinstance(message["content"], list))),
    "timestamps taken for keys": lambda: reading(
        "/add", lambda body: {"messages": list({message.get("timestamp"): message for message in body["messages"]}.values())}
    ),
    "texts cut at 1,000 characters": lambda: adding(lambda message: message | {"content": message["content"][:1000]}),
    "500 for a long query": lambda: refusing("/search", 500, lambda body: len(body.get("query", "")) > 8192),
    "ASCII alone searched": lambda: reading("/search", lambda body: {"query": body["query"].encode("ascii", "ignore").decode()}),
    "fragments dropped": lambda: adding(lambda message: None if message["content"].endswith("barks") else message),
    "WebP refused": lambda: refusing("/add", 422, content_has("image/webp")),
    "images left out of hits": lambda: showing(lambda parts: [part for part in parts if "text" in part]),
    "texts before images": lambda: showing(lambda parts: sorted(parts, key=lambda part: PART_ORDER[part["type"]])),
    "replays stored again": stores_replays,
    "409 for a replay": lambda: answers_replays(409),
    "request_id not compared": lambda: reading("/add", lambda body: {"request_id": hashlib.sha256(dumped(body)).hexdigest()}),
    "409 and written": lambda: writes_in_spite_of_409,
    "request_id unique over all users": has_global_request_ids,
    "500 for what is no JSON": lambda: crashes_without_json,
    "500 for a top_k of another type": lambda: refusing("/search", 500, lambda body: not isinstance(body.get("top_k", 1), int)),
    "422 without the field": lambda: answering("*", lambda _: {"detail": {"reason": "invalid"}}, (422).__eq__),
    "no reason in errors": lambda: explains_nothing,
    "errors repeat the request": lambda: repeats_the_request,
    "the key is not checked": lambda: checks_no_key,
    "the key is not checked for Search": lambda: checks_no_key_of_searches,
    "the beginning of a key suffices": lambda: checks_the_beginning_of_keys,
    "X-Api-Key is not read": lambda: ignores_x_api_key,
    "403 instead of 401": lambda: answers_403,
    "errors repeat the key": lambda: repeats_the_key,
    "written before the key is checked": lambda: writes_before_the_key,
    "DELETE does nothing": lambda: deletes_nothing,
}
