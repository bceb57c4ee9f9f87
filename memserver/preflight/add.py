"""Add: 200 once the messages are durable and searchable, with the three ids as they came."""

from __future__ import annotations

from memserver.preflight.probe import Failed, Group, Probe, accepted, beagle, expect_status, turn

IDS = {
    "colons and slashes": "eval:run_1:conv-0/../chunk 0",
    "blanks around them": " padded ",
    "quotes and escapes": 'a "quoted" \\ back\\slash \\u0041 %2F+',
    "composed accents (NFC)": "Ren\u00e9e",
    "separate accents (NFD)": "Rene\u0301e",
    "emoji and Chinese": "用户🙂👩‍👩‍👧",
    "capitals": "MiXeD CaSe",
    "200 characters": "x" * 200,
}
GROUP = Group("add")


@GROUP.check("answers 200, never 202", "answer 200 after the work is done; the platform takes a 202 for an error")
def is_200(probe: Probe) -> None:
    reply = probe.client.add(probe.body(probe.user(), turn(beagle(probe.word()))))
    expect_status("Add", reply, 200)


@GROUP.check("says success: true", 'answer a JSON object with "success": true, a boolean')
def says_success(probe: Probe) -> None:
    reply = probe.store(probe.user(), turn(beagle(probe.word())))
    if not isinstance(reply.json, dict) or reply.json.get("success") is not True:
        raise Failed('Add answered without "success": true in a JSON object')


def _echoes(name: str, odd: str) -> None:
    @GROUP.check(
        f"echoes ids with {name}", "return request_id, user_id and session_id byte for byte; nothing may be parsed from them"
    )
    def echoes(probe: Probe) -> None:
        (user,) = probe.family(odd)
        ids = {"request_id": probe.request_id() + odd, "user_id": user, "session_id": odd}
        reply = probe.store(user, turn(beagle(probe.word())), **ids)
        answer = reply.json if isinstance(reply.json, dict) else {}
        if changed := [field for field, sent in ids.items() if answer.get(field) != sent]:
            raise Failed(f"not as they were sent: {', '.join(changed)}")


for _name, _odd in IDS.items():
    _echoes(_name, _odd)


@GROUP.check("is searchable as soon as it answers", "index before you answer; a Search follows at once")
def is_searchable(probe: Probe) -> None:
    user = probe.user()
    for _ in range(3):
        word = probe.remember(user)
        if word not in probe.texts(user):
            raise Failed("a Search right after an Add does not find what it added")


@GROUP.check("keeps every message of a full Add", "an Add holds up to 20 messages; store each of them")
def keeps_all(probe: Probe) -> None:
    user, words = probe.user(), [probe.word() for _ in range(20)]
    probe.store(user, *[turn(beagle(word)) for word in words])
    probe.expect(user, *words)


@GROUP.check("ignores unknown fields", "ignore fields that you do not know, in the body and in messages")
def ignores_extras(probe: Probe) -> None:
    user, word = probe.user(), probe.word()
    probe.store(user, turn(beagle(word), name="x", tool_calls=[]), metadata={"a": [1]}, app_id=None)
    probe.expect(user, word)


@GROUP.check("takes a null session_id", "read a null session_id as one session of the user")
def takes_null_session(probe: Probe) -> None:
    user, word = probe.user(), probe.word()
    probe.store(user, turn(beagle(word)), session_id=None)
    probe.expect(user, word)


@GROUP.check("takes a missing session_id", "read a missing session_id as one session of the user")
def takes_no_session(probe: Probe) -> None:
    user, word = probe.user(), probe.word()
    body = probe.body(user, turn(beagle(word)))
    del body["session_id"]
    accepted("Add", probe.client.add(body))
    probe.expect(user, word)


@GROUP.check("answers an empty list of messages", "answer 200 and store nothing, or 422; never a 5xx")
def takes_no_messages(probe: Probe) -> None:
    reply = probe.client.add(probe.body(probe.user()))
    if not reply.ok and reply.status != 422:
        raise Failed(f"Add answered {reply.status}")
