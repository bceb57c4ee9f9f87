"""Isolation: user_id alone decides, exactly as it was sent; session_id groups and never filters."""

from __future__ import annotations

from memserver.preflight.probe import Failed, Group, Probe, beagle, turn

FIX = "compare user_id byte for byte: no case folding, trimming, Unicode normalization, wildcards or path handling"
PAIRS = {
    "another user": (":a", ":b"),
    "a user of another case": (":Ann", ":ann"),
    "a user of another Unicode form": (":Ren\u00e9e", ":Rene\u0301e"),
    "a user whose id is longer": (":conv-1", ":conv-10"),
    "a user whose id has blanks around it": (":ann", ":ann "),
    "a user whose id looks like a path to it": ("/ann", "/x/../ann"),
    "a user whose id looks like a pattern of it": (":ann", ":%"),
}
GROUP = Group("isolation")


def _apart(name: str, endings: tuple[str, str]) -> None:
    @GROUP.check(f"nothing of {name} is found", FIX)
    def apart(probe: Probe) -> None:
        users = probe.family(*endings)
        words = [probe.remember(user) for user in users]
        for user, own, other in zip(users, words, reversed(words), strict=True):
            probe.expect(user, own)
            if other in probe.texts(user):
                raise Failed("a memory of the other user is among the hits")


for _name, _endings in PAIRS.items():
    _apart(_name, _endings)


@GROUP.check("a Search finds all sessions of the user", "search by user_id alone; session_id is no filter")
def finds_all_sessions(probe: Probe) -> None:
    user, words = probe.user(), [probe.word() for _ in range(3)]
    for number, word in enumerate(words):
        probe.store(user, turn(beagle(word)), session_id=f"{probe.prefix}:s{number}")
    probe.expect(user, *words)


@GROUP.check("a session that comes again adds to what was there", "append to a known session_id, never replace it")
def appends_to_sessions(probe: Probe) -> None:
    user = probe.user()
    words = [probe.remember(user) for _ in range(3)]
    probe.expect(user, *words)
