"""Removal, which is not in the contract: DELETE /users/{user_id}, where a server has it."""

from __future__ import annotations

from memserver.preflight.probe import Failed, Group, Probe, Skipped, turn

GROUP = Group("removal")


@GROUP.check("a deleted user's memories are gone", "drop the user from every index and cache with its rows")
def forgets(probe: Probe) -> None:
    user, other = probe.family("", ":other")
    word, kept = probe.remember(user), probe.remember(other)
    probe.expect(user, word)
    status = probe.client.delete(user).status
    if status in (404, 405, 501):
        raise Skipped("no DELETE /users/{user_id}, delete the data of a run by other means within 30 days")
    if not 200 <= status < 300:
        raise Failed(f"DELETE answered {status}")
    if probe.hits(user):
        raise Failed("a user that was deleted still has hits")
    probe.expect(other, kept)
    probe.store(user, turn("Another beginning."))
    if word in probe.texts(user):
        raise Failed("what was deleted is found again after the next Add")
