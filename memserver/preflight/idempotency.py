"""Idempotency: retries and resumes send the same Add again, under the same request_id."""

from __future__ import annotations

from functools import partial

from memserver.preflight.probe import Failed, Group, Probe, Skipped, accepted, beagle, expect_status, text_of, turn

AT_ONCE = 8
GROUP = Group("idempotency")


def _copies(probe: Probe, user: str, word: str) -> int:
    """How many hits show the word, once it is there."""
    probe.expect(user, word)
    return sum(word in text_of(hit) for hit in probe.hits(user))


@GROUP.check("answers a replay with 200", "answer the same request_id with the same body like the first time")
def replays(probe: Probe) -> None:
    body = probe.body(probe.user(), turn(beagle(probe.word())))
    first, second = accepted("Add", probe.client.add(body)), probe.client.add(body)
    expect_status("the same Add again", second, first.status)
    if first.json != second.json:
        raise Failed("the same Add again got another body")


@GROUP.check("stores a replay once", "keep (user_id, request_id) in the database, in the transaction that stores the messages")
def stores_once(probe: Probe) -> None:
    user, word = probe.user(), probe.word()
    body = probe.body(user, turn(beagle(word)))
    accepted("Add", probe.client.add(body))
    before = _copies(probe, user, word)
    probe.client.add(body)
    if _copies(probe, user, word) != before:
        raise Failed("the same Add again was stored again")


@GROUP.check("stores replays at the same moment once", "let a unique key in the database decide, not a look before the write")
def stores_once_at_once(probe: Probe) -> None:
    once, often = probe.family(":a", ":b")
    word = probe.word()
    probe.store(once, turn(beagle(word)))
    body = probe.body(often, turn(beagle(word)))
    for reply in probe.at_once([partial(probe.client.add, body)] * AT_ONCE):
        expect_status("an Add sent several times at once", reply, 200, 409)  # 409 while another is at work: sent again
    accepted("the same Add again", probe.client.add(body))
    if _copies(probe, often, word) != _copies(probe, once, word):
        raise Failed("an Add sent several times at once was stored more than once")


def _reuse(probe: Probe) -> tuple[int, str, str]:
    """Another body under a used request id: the status, the user, and the word of the second body."""
    user, second = probe.user(), probe.word()
    body = probe.body(user, turn(beagle(probe.word())))
    accepted("Add", probe.client.add(body))
    return probe.client.add(body | {"messages": [turn(beagle(second))]}).status, user, second


@GROUP.check("answers another body under a used request_id with 409", "keep a hash of the body beside request_id and compare it")
def refuses_reuse(probe: Probe) -> None:
    status, _, _ = _reuse(probe)
    if status != 409:
        raise Failed(f"Add answered {status} instead of 409")


@GROUP.check("writes nothing with that 409", "compare before you write, or roll back")
def writes_nothing(probe: Probe) -> None:
    status, user, second = _reuse(probe)
    if status != 409:
        raise Skipped("no 409 came")
    if second in probe.texts(user):
        raise Failed("what the refused Add carried is found")


@GROUP.check("takes the request_id of another user", "a request_id is unique within its user only")
def is_per_user(probe: Probe) -> None:
    request_id, first, second = probe.request_id(), *probe.family(":a", ":b")
    probe.store(first, turn(beagle(probe.word())), request_id=request_id)
    word = probe.word()
    probe.store(second, turn(beagle(word)), request_id=request_id)
    probe.expect(second, word)
