"""Odd messages and timestamps of real runs: what can be read is read. The platform never retries a 4xx: one ends a run."""

from __future__ import annotations

from typing import Any

from memserver.preflight.probe import Group, Probe, beagle, turn

# Messages of which nothing is to be kept; the rest of their Add is.
EMPTY: dict[str, dict[str, Any]] = {
    "an empty turn": turn(""),
    "a blank turn": turn(" \n\t\u3000"),
    "a null content": turn(None),
    "an empty array as content": turn([]),
    "a NUL byte alone": turn("\0"),
}

# What may stand around a text; {} is the text, in one of the values.
TEXTS: dict[str, dict[str, Any]] = {
    "blanks around the text": turn("  \n{}\n "),
    "a NUL byte in the text": turn("{}\0"),
    "a lone surrogate in the text": turn("{}\ud83d"),
    "an unknown role": turn("{}", role="narrator"),
    "a null role": turn("{}", role=None),
    "an array of strings as content": turn(["{}", "Woof."]),
    "an array of text parts as content": turn([{"type": "text", "text": "{}"}, {"type": "text", "text": "Woof."}]),
}

MISSING = object()
TIMES: dict[str, object] = {
    "that is missing": MISSING,
    "that is null": None,
    "that is zero": 0,
    "past the year 2100": 32_503_680_000_000,
    "past the year 9999": 10**18,
    "before 1970": -86_400_000,
    "that is a fraction": 1_684_549_260_000.5,
    "in a string": "1684549260000",
    "in ISO 8601": "2023-05-20T02:21:00Z",
    "that can't be read": "soon",
}
GROUP = Group("odd input")


def _dropped(name: str, message: dict[str, Any]) -> None:
    @GROUP.check(f"takes {name}", "drop a message without text and keep the others, with 200 even when none is left")
    def dropped(probe: Probe) -> None:
        user, word = probe.user(), probe.word()
        probe.store(user, message)
        probe.store(user, message, turn(beagle(word)))
        probe.expect(user, word)


def _read(name: str, message: dict[str, Any]) -> None:
    @GROUP.check(f"takes {name}", "clean what can't be stored, read unknown roles as user, join parts by newlines")
    def read(probe: Probe) -> None:
        user, word = probe.user(), probe.word()
        probe.store(user, message | {"content": _filled(message["content"], beagle(word))})
        probe.expect(user, word)


def _filled(content: Any, text: str) -> Any:
    """The content with its {} replaced, wherever it stands."""
    if isinstance(content, list):
        return [_filled(part, text) for part in content]
    if isinstance(content, dict):
        return {key: _filled(value, text) for key, value in content.items()}
    return content.replace("{}", text)


def _timed(name: str, value: object) -> None:
    @GROUP.check(f"takes a timestamp {name}", "a timestamp that can't be read counts as absent; never refuse a message for it")
    def timed(probe: Probe) -> None:
        user, word = probe.user(), probe.word()
        message = turn(beagle(word), timestamp=value)
        if value is MISSING:
            del message["timestamp"]
        probe.store(user, message)
        probe.expect(user, word)


for _name, _message in EMPTY.items():
    _dropped(_name, _message)
for _name, _message in TEXTS.items():
    _read(_name, _message)
for _name, _value in TIMES.items():
    _timed(_name, _value)


@GROUP.check("takes equal timestamps in one session", "a timestamp is no key: messages of the same moment are all kept")
def takes_equal_times(probe: Probe) -> None:
    user, words = probe.user(), [probe.word() for _ in range(3)]
    probe.store(user, *[turn(beagle(word)) for word in words])
    probe.expect(user, *words)
