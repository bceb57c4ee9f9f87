from __future__ import annotations

from memserver.ids import user_hash


def test_the_hash_of_a_user_depends_on_the_salt_and_tells_nothing() -> None:
    one, other = user_hash("ann", b"s" * 16), user_hash("ann", b"t" * 16)
    assert one == user_hash("ann", b"s" * 16)
    assert len({one, other, user_hash("Ann", b"s" * 16)}) == 3
    assert (len(one), int(one, 16) >= 0) == (16, True)
