"""Bodies that no client should send, each a pure function of its seed. What text they have is marked, to be known in a log."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

MARK = "zqfuzz"
HUGE_EVERY = 2_000  # bodies
HUGE = 10 * 2**20  # characters
LONG = 20_000  # characters at most of other texts
DEEP = 100_000

BOMBS: Mapping[str, str] = {
    "one letter": "a",
    "capitals": "AaAAa",
    "mixed": "aA1",
    "digits": "1",
    "versions": "1.2.3-",
    "joints": "a-",
    "joints alone": "._/\\:@#+-",
    "apostrophes": "a's",
    "apostrophes alone": "'’",
    "blanks": " ",
    "lines": "\n",
    "labels": "A: ",
    "names": "Ab.'’-",
    "Chinese": "医生说",
    "Chinese and Latin": "医a",
    "kana": "カナ",
    "Thai": "ไทย",
    "Hangul": "한국",
    "marks": "e\u0301\u0327",
    "marks alone": "\u0301\u0327",
    "ligatures": "\ufdfa",
    "emoji": "👩‍👩‍👧",
    "right to left": "\u202eشك",
    "sharp s": "ß",
    "underscores": "a_b",
    "paths": "/usr/lib/python3.11/",
    "html": "<div class='a'>&amp;",
    "json": '{"a":[1,2,',
}
"""Texts that are hard on some regular expression when repeated."""

SYNTAX = (
    "' OR 1=1 --",
    "'; DROP TABLE messages; --",
    '" AND "',
    "a NEAR/2 b",
    "title:(a OR b*)",
    "NOT",
    "*",
    '"""',
    "^a",
    "{a b}: c",
    "%s %d {0} {{x}}",
    "${jndi:ldap://127.0.0.1/a}",
    "$(id)",
    "../../etc/passwd",
    "<script>alert(1)</script>",
    "\x00",
    "\ud800",
    "\u202e",
    "\ufeff",
)
ODD_ENDS = ("", ":", "/", "..", " ", "é", "e\u0301", "\n", "%", "🙂", *SYNTAX)
"""Of ids."""

ODD_NUMBERS = ("1e400", "-1e400", "9" * 5000, "-0", "1.5", "1e-400", "NaN", "Infinity", "9223372036854775808", "0.1e1", "-1")
FIELDS = ("request_id", "user_id", "session_id", "messages", "query", "top_k", "options", "role", "content", "timestamp")


@dataclass(frozen=True, slots=True)
class Sent:
    """A request."""

    kind: str
    path: str
    body: bytes


def sent(seed: int, number: int) -> Sent:
    """The ``number``-th request."""
    chance = Random(f"{seed} {number}")
    path, value = chance.choice([("/add", _add), ("/search", _search)])
    if number % HUGE_EVERY == HUGE_EVERY - 1:
        return Sent("huge", path, _json(value(chance, _repeated(chance, HUGE))))
    kind = chance.choice(list(KINDS))
    return Sent(kind, path, KINDS[kind](chance, value))


Value = Callable[[Random, str], dict[str, Any]]
"""An ordinary Add or Search around a text."""


def _add(chance: Random, text: str) -> dict[str, Any]:
    message = {"role": "user", "content": text, "timestamp": chance.randrange(2**41)}
    ids = {"request_id": _id(chance), "user_id": _id(chance), "session_id": _id(chance)}
    return ids | {"messages": [message] * chance.randint(1, 3)}


def _search(chance: Random, text: str) -> dict[str, Any]:
    return {"query": text, "user_id": _id(chance), "top_k": chance.choice([0, 1, 100, 10**6]), "options": [text[:100]]}


def _id(chance: Random) -> str:
    return f"{MARK}{chance.randrange(50)}{chance.choice(ODD_ENDS)}"


def _repeated(chance: Random, length: int) -> str:
    pattern = BOMBS[chance.choice(list(BOMBS))]
    return f"{MARK} " + pattern * (length // len(pattern))


def _bomb(chance: Random, value: Value) -> bytes:
    return _json(value(chance, _repeated(chance, chance.randint(1, LONG))))


def _syntax(chance: Random, value: Value) -> bytes:
    return _json(value(chance, f"{MARK} " + " ".join(chance.choices(SYNTAX, k=chance.randint(1, 5)))))


def _nested(chance: Random, value: Value) -> bytes:
    start, end = chance.choice([(b"[", b"]"), (b'{"content":', b"}")])
    depth = chance.randint(1, DEEP)
    return _planted(chance, value, start * depth + b"1" + end * (depth * chance.randrange(2)))


def _numbers(chance: Random, value: Value) -> bytes:
    return _planted(chance, value, chance.choice(ODD_NUMBERS).encode())


def _odd_values(chance: Random, value: Value) -> bytes:
    return _planted(chance, value, _json(_anything(chance, 4)))


def _duplicates(chance: Random, value: Value) -> bytes:
    first = _json(value(chance, MARK))[:-1]
    return first + b"," + _json(value(chance, f"{MARK} again"))[1:-1] + b',"user_id":' + _json(_anything(chance, 1)) + b"}"


def _bytes_changed(chance: Random, value: Value) -> bytes:
    body = bytearray(_json(value(chance, f"{MARK} é医 text")))
    for _ in range(chance.randint(1, 8)):
        body[chance.randrange(len(body))] = chance.randrange(256)
    return bytes(body)


def _cut(chance: Random, value: Value) -> bytes:
    body = _json(value(chance, f"{MARK} é医 text"))
    return body[: chance.randrange(len(body))]


def _noise(chance: Random, value: Value) -> bytes:  # noqa: ARG001
    return MARK.encode() + chance.randbytes(chance.randint(0, 2000))


def _images(chance: Random, value: Value) -> bytes:
    start = chance.choice([b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"RIFF\0\0\0\0WEBP", b"GIF89a", b""])
    url = f"data:image/{chance.choice(['png', 'jpeg', 'webp', 'gif'])};base64,"
    url += base64.b64encode(start + chance.randbytes(chance.randint(0, 500))).decode()[: chance.randint(1, 700)]
    part = {"type": "image_url", "image_url": chance.choice([url, {"url": url}, {"url": None}, [url]])}
    return _planted(chance, value, _json([{"type": "text", "text": MARK}, part]))


KINDS: Mapping[str, Callable[[Random, Value], bytes]] = {
    "bombs": _bomb,
    "syntax": _syntax,
    "nesting": _nested,
    "numbers": _numbers,
    "odd values": _odd_values,
    "duplicate keys": _duplicates,
    "changed bytes": _bytes_changed,
    "cut short": _cut,
    "noise": _noise,
    "images": _images,
}


def _planted(chance: Random, value: Value, raw: bytes) -> bytes:
    """An ordinary body with ``raw`` as the value of one of its fields, wherever that stands."""
    body = value(chance, MARK)
    holder = chance.choice([body, *body.get("messages", [])[:1]])
    holder[chance.choice([*holder, *FIELDS])] = (hole := f"{MARK} hole")
    return _json(body).replace(_json(hole), raw)


def _anything(chance: Random, depth: int) -> Any:
    """A JSON value."""
    leaves: Sequence[Any] = [None, True, False, 0, -1, 1.5, 2**53, "", MARK, f"{MARK} {chance.choice(SYNTAX)}", [], {}]
    kind = chance.randrange(4) if depth else 0
    if kind < 2:
        return chance.choice(leaves)
    items = [_anything(chance, depth - 1) for _ in range(chance.randrange(4))]
    return items if kind == 2 else {chance.choice([*FIELDS, "type", "text", "image_url", MARK]): item for item in items}


def _json(value: Any) -> bytes:
    """Not orjson, which refuses lone surrogates and large numbers."""
    return json.dumps(value, separators=(",", ":")).encode()
