"""Access: one key in any of three headers, 401 without it. Skipped unless there is a --key."""

from __future__ import annotations

from collections.abc import Callable

from memserver.preflight.client import Reply
from memserver.preflight.probe import QUESTION, Failed, Group, Probe, beagle, expect_status, turn

HEADERS = {"Authorization: Bearer": "Bearer ", "Authorization: Token": "Token ", "X-Api-Key": ""}
GROUP = Group("access")


def _both(probe: Probe, auth: dict[str, str], user: str, word: str) -> dict[str, Reply]:
    return {
        "Add": probe.client.add(probe.body(user, turn(beagle(word))), auth),
        "Search": probe.client.search({"query": QUESTION, "user_id": user, "top_k": 100}, auth),
    }


def _opens(header: str, scheme: str) -> None:
    @GROUP.check(f"takes the key as {header}", "accept the key in each of the three headers")
    def opens(probe: Probe) -> None:
        auth = {header.partition(":")[0]: scheme + probe.needs_key()}
        for call, reply in _both(probe, auth, probe.user(), probe.word()).items():
            expect_status(call, reply, 200)


for _header, _scheme in HEADERS.items():
    _opens(_header, _scheme)


def _closed(name: str, auth: Callable[[str], dict[str, str]]) -> None:
    @GROUP.check(f"refuses {name} with 401", "check the whole key on Add and on Search, before the body")
    def closed(probe: Probe) -> None:
        headers = auth(probe.needs_key())
        for call, reply in _both(probe, headers, probe.user(), probe.word()).items():
            expect_status(call, reply, 401)


_closed("a missing key", lambda _: {})
_closed("a wrong key", lambda key: {"Authorization": f"Bearer {key}x"})
_closed("the beginning of the key", lambda key: {"X-Api-Key": key[:-1]})
_closed("an empty key", lambda _: {"X-Api-Key": ""})


@GROUP.check("writes nothing without the key", "check the key before you do anything")
def writes_nothing(probe: Probe) -> None:
    probe.needs_key()
    user, word = probe.user(), probe.word()
    reply, _ = _both(probe, {}, user, word).values()
    if not reply.ok and word in probe.texts(user):
        raise Failed("what an Add without the key carried is found")


@GROUP.check("says neither the key nor what was sent for it", "an error must not repeat a key, right or wrong")
def says_no_key(probe: Probe) -> None:
    key = probe.needs_key()
    wrong = probe.word()
    replies = [
        *_both(probe, {"X-Api-Key": wrong}, probe.user(), probe.word()).values(),
        probe.client.add(b"{"),
        probe.client.search(b"{"),
        probe.client.health(),
    ]
    if any(secret in reply.text for reply in replies for secret in (key, wrong)):
        raise Failed("an answer carries the key that was sent")
