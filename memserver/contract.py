"""The HTTP contract as bytes: how an Add or a Search is read, and how its answer is written.

Reading is lenient, because the platform never retries a 422 and a single one ends a run: what can be read is read, what
can't be read counts as absent, and only a request without a usable id or without messages or a query is refused.
The standard library's parser reads (unlike orjson it keeps lone surrogates, NaN and integers of any size apart, which
the echo and the digest need); orjson writes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import orjson

from memserver.errors import BadRequest
from memserver.types import AddRequest, Hit, Image, Message, Part, SearchRequest

DEFAULT_TOP_K = 100  # what formal runs send
MAX_TOP_K = 2**31 - 1
DEFAULT_ROLE = "user"
MAX_ROLE_LENGTH = 100  # characters
MAX_IMAGE_BYTES = 10 * 2**20  # decoded
MAX_ID_LENGTH = 16_384  # characters; every row of the store carries the ids
MAX_DIGITS = 1000  # int() of a longer number takes quadratic time and raises beyond 4300 digits

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
FIRST_MS = (datetime.min.replace(tzinfo=UTC) - EPOCH) // MILLISECOND
LAST_MS = (datetime.max.replace(tzinfo=UTC) - EPOCH) // MILLISECOND

SURROGATE = re.compile("[\ud800-\udfff]")
DATA_URL = re.compile(r"data:(image/(?:jpeg|png|webp));base64,", re.IGNORECASE)
MAGIC = {
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/webp": re.compile(rb"RIFF.{4}WEBP", re.DOTALL),
}


@contextmanager
def _bounded_nesting() -> Iterator[None]:
    try:
        yield
    except RecursionError:
        raise BadRequest("body", "is nested too deeply, send flatter JSON") from None


@_bounded_nesting()
def read_add(body: bytes) -> tuple[AddRequest, bytes]:
    """An Add and the body of its 200, to be sent once the Add is durable: it echoes the ids as received.

    Raises ``BadRequest`` for a body that is no JSON object, an unusable id, or ``messages`` that are no array.
    """
    fields = _read_object(body)
    request_id, user_id = _read_id(fields, "request_id"), _read_id(fields, "user_id")
    raw_session, raw_messages = fields.get("session_id"), fields.get("messages")
    request = AddRequest(
        request_id=request_id,
        user_id=user_id,
        session_id=_read_session(raw_session),
        messages=_read_messages(raw_messages),
        digest=_digest({"session_id": raw_session, "messages": raw_messages}),
    )
    return request, add_response(request_id, user_id, raw_session)


@_bounded_nesting()
def read_search(body: bytes) -> SearchRequest:
    """A Search; a blank or null query is read as ``""``.

    Raises ``BadRequest`` for a body that is no JSON object, an unusable ``user_id``, or a missing ``query``.
    """
    fields = _read_object(body)
    user_id = _read_id(fields, "user_id")
    if "query" not in fields:
        raise BadRequest("query", "is missing, send a string or an array of content parts")
    query, _ = _read_content(fields["query"])
    return SearchRequest(
        user_id=user_id,
        query=query if query.strip() else "",
        top_k=_read_top_k(fields.get("top_k")),
        options=_read_options(fields.get("options")),
    )


def _read_object(body: bytes) -> dict[str, object]:
    try:
        value = json.loads(body.decode("utf-8-sig", "surrogateescape"), parse_int=_read_integer)
    except ValueError:
        raise BadRequest("body", "is not JSON, send a JSON object in UTF-8") from None
    if not isinstance(value, dict):
        raise BadRequest("body", "is not a JSON object")
    return value


def _read_integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= MAX_DIGITS else float(digits)


def _read_id(fields: dict[str, object], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise BadRequest(name, "is missing or no string, send a non-empty string")
    return _usable(name, value)


def _read_session(value: object) -> str:
    """The text that a session is grouped under."""
    if value is None:
        return ""
    try:
        key = value if isinstance(value, str) else _json(value, sort_keys=True, allow_nan=False)
    except ValueError:
        raise BadRequest("session_id", "has a number that JSON can't write, send a string") from None
    return _usable("session_id", key)


def _usable(name: str, value: str) -> str:
    if SURROGATE.search(value):
        raise BadRequest(name, "is not valid Unicode, send it without lone surrogates")
    if len(value) > MAX_ID_LENGTH:
        raise BadRequest(name, f"is longer than {MAX_ID_LENGTH} characters, send a shorter one")
    return value


def _read_messages(value: object) -> tuple[Message, ...]:
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list):
        raise BadRequest("messages", "is missing or no array, send an array of messages")
    read = (_read_message(element) for element in value)
    return tuple(message for message in read if message is not None)


def _read_message(value: object) -> Message | None:
    """None for what is neither an object nor a string, and for a message without text and image."""
    if isinstance(value, str):
        value = {"content": value}
    if not isinstance(value, dict):
        return None
    text, parts = _read_content(value.get("content"))
    if not parts and not text.strip():
        return None
    return Message(_read_role(value.get("role")), text, _read_timestamp(value.get("timestamp")), parts)


def _read_role(value: object) -> str:
    role = _clean(value).strip()[:MAX_ROLE_LENGTH].rstrip() if isinstance(value, str) else ""
    return role or DEFAULT_ROLE


def _read_content(value: object) -> tuple[str, tuple[Part, ...]]:
    """The text, and all parts in order if one of them is an image."""
    read = [_read_part(element) for element in (value if isinstance(value, list) else [value])]
    parts = tuple(part for part in read if part)
    text = "\n".join(part for part in parts if isinstance(part, str))
    return text, parts if any(isinstance(part, Image) for part in parts) else ()


def _read_part(value: object) -> Part | None:
    """Text or an image; None for null and for an image that can't be read."""
    match value:
        case None:
            return None
        case {"image_url": {"url": str(url)}} | {"image_url": str(url)}:
            return _read_image(url)
        case str(text) | {"text": str(text)} | {"content": str(text)}:
            return _clean(text)
        case {"type": "image_url"}:
            return None
        case bool() | int() | float():
            return str(value)
        case _:
            return _clean(_json(value))


def _read_image(url: str) -> Image | None:
    head = DATA_URL.match(url)
    if head is None or len(url) - head.end() > -(-MAX_IMAGE_BYTES // 3) * 4:
        return None
    mime = head[1].lower()
    try:
        data = base64.b64decode(url[head.end() :], validate=True)
    except ValueError:
        return None
    if len(data) > MAX_IMAGE_BYTES or not MAGIC[mime].match(data):
        return None
    return Image(hashlib.sha256(data).hexdigest(), mime, data)


def _read_timestamp(value: object) -> int | None:
    """Unix milliseconds; a time without an offset is UTC. None for what a calendar of the years 1 to 9999 can't show."""
    ms = _read_number(value)
    if ms is None and isinstance(value, str):
        ms = _read_iso(value)
    return ms if ms is not None and FIRST_MS <= ms <= LAST_MS else None


def _read_iso(text: str) -> int | None:
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - EPOCH) // MILLISECOND


def _read_number(value: object) -> int | None:
    """The whole part of a number or of a string that holds one."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return value if isinstance(value, int) else int(float(value))
    except (ValueError, OverflowError):  # no number, NaN; infinite
        return None


def _read_top_k(value: object) -> int:
    number = _read_number(value)
    return DEFAULT_TOP_K if number is None else min(max(number, 0), MAX_TOP_K)


def _read_options(value: object) -> tuple[str, ...]:
    read = (_read_part(element) for element in value) if isinstance(value, list) else ()
    return tuple(option for option in read if isinstance(option, str) and option.strip())


def _clean(text: str) -> str:
    """``text`` as a database and an encoder can take it: without NUL, lone surrogates replaced; nothing else changes."""
    return SURROGATE.sub("\ufffd", text.replace("\0", ""))


def _digest(value: object) -> str:
    return hashlib.sha256(_json(value, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()


def _json(value: object, *, sort_keys: bool = False, allow_nan: bool = True) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=sort_keys, allow_nan=allow_nan)


def add_response(request_id: str, user_id: str, session_id: object) -> bytes:
    """The body of an Add's 200; ``session_id`` is the value received, whatever its type."""
    answer = {"success": True, "request_id": request_id, "user_id": user_id, "session_id": session_id}
    return _json(answer).encode()


def search_response(hits: Sequence[Hit]) -> bytes:
    """The body of a Search's 200, in the order of ``hits``."""
    return orjson.dumps({"data": [_hit(hit) for hit in hits]})


def _hit(hit: Hit) -> dict[str, object]:
    content = hit.content if isinstance(hit.content, str) else [_part(part) for part in hit.content]
    fields: dict[str, object] = {"id": hit.id, "content": content, "score": hit.score}
    return fields if hit.created_at is None else fields | {"created_at": hit.created_at}


def _part(part: Part) -> dict[str, object]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    url = f"data:{part.mime};base64,{base64.b64encode(part.data).decode('ascii')}"
    return {"type": "image_url", "image_url": {"url": url}}
