"""Errors: the right status, a reason that helps, and nothing of the request in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memserver.preflight.client import Reply, encoded
from memserver.preflight.probe import Failed, Group, Probe, beagle, turn

RETRIED = {408, 409, 425, 429}
NO_OBJECTS = {
    "nothing": b"",
    "half of an object": b'{"user_id": "u',
    "an array": b"[]",
    "a string": b'"text"',
    "deep nesting": b"[" * 50_000,
    "no UTF-8": b'{"user_id": "\xff\xfe", "query": 1',
}
ODD_VALUES: tuple[Any, ...] = (None, True, 10**30, float("nan"), [[None]], {"a": 1})
GROUP = Group("errors")


def _both(probe: Probe, body: object) -> dict[str, Reply]:
    return {"Add": probe.client.add(body), "Search": probe.client.search(body)}


@GROUP.check("answers what is no JSON object with 400 or 422", "catch the parser's errors; a 5xx is retried in vain")
def refuses_no_objects(probe: Probe) -> None:
    for name, body in NO_OBJECTS.items():
        for call, reply in _both(probe, body).items():
            if not 400 <= reply.status < 500 or reply.status in RETRIED:
                raise Failed(f"{call} answered {reply.status} to {name}")


def _bodies(probe: Probe, value: Any) -> Iterator[dict[str, Any]]:
    """Bodies for Add and Search at once, one field of each replaced; no text, so that nothing is stored under odd ids."""
    whole = probe.body(probe.user(), turn(" "), query="?", top_k=10, options=["A"])
    return (whole | {"request_id": probe.request_id()} | {field: value} for field in whole)


@GROUP.check("has no 5xx for values of a wrong type", "check types before you use a value")
def survives_odd_values(probe: Probe) -> None:
    for value in ODD_VALUES:
        for body in _bodies(probe, value):
            for call, reply in _both(probe, body).items():
                if reply.status >= 500:
                    raise Failed(f"{call} answered {reply.status} to a {type(value).__name__} in one of its fields")


def _refuses_missing(call: str, field: str) -> None:
    @GROUP.check(
        f"{call} without {field} is 422 and says so",
        'answer 422 with details that name the field, like {"detail": {"reason", "field"}}',
    )
    def refuses(probe: Probe) -> None:
        body = probe.body(probe.user(), turn(" "), query="?", top_k=10)
        del body[field]
        reply = (probe.client.add if call == "Add" else probe.client.search)(body)
        if reply.status != 422:
            raise Failed(f"{call} answered {reply.status} instead of 422")
        if not isinstance(_detail(reply), dict | list) or field not in encoded(_detail(reply)).decode():
            raise Failed("the detail of the 422 does not name the field")


for _call, _field in [("Add", "request_id"), ("Add", "user_id"), ("Add", "messages"), ("Search", "user_id"), ("Search", "query")]:
    _refuses_missing(_call, _field)


@GROUP.check("gives a reason", 'answer errors with {"detail": {"reason": "what to do"}}, or with structured details for a 422')
def gives_reasons(probe: Probe) -> None:
    for call, reply in _both(probe, b"{").items():
        detail = _detail(reply)
        reason = (
            detail.get("reason")
            if isinstance(detail, dict)
            else detail
            if reply.status == 422 and isinstance(detail, list)
            else None
        )
        if not reason:
            raise Failed(f"{call} answered {reply.status} without detail.reason")


def _detail(reply: Reply) -> Any:
    return reply.json.get("detail") if isinstance(reply.json, dict) else None


@GROUP.check("repeats nothing of the request", "name the field that is wrong, never its value: errors end up in logs")
def repeats_nothing(probe: Probe) -> None:
    word = probe.word()
    whole = probe.body(probe.user(), turn(beagle(word)), query=beagle(word))
    broken: list[object] = [
        encoded(whole)[:-1],
        {**whole, "user_id": [word]},
        {**whole, "user_id": None},
        {"query": beagle(word)},
    ]
    for body in broken:
        for call, reply in _both(probe, body).items():
            if not reply.ok and word in reply.text:
                raise Failed(f"{call} answered {reply.status} with a part of the request in it")
