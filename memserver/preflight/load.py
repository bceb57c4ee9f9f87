"""Load: as many requests as a run may have in flight, and the largest body of the contract."""

from __future__ import annotations

from functools import partial

from memserver.preflight.client import encoded
from memserver.preflight.images import JPEG, image_part, text_part
from memserver.preflight.probe import Group, Probe, accepted, beagle, turn

ADDS = 64
SEARCHES = 32
ONE_USER = 16
BODY_BYTES = 42 * 2**20
IMAGE_CHARS = 10 * 2**20 // 3 * 4  # base64 of just below 10 MiB
GROUP = Group("load")


@GROUP.check("serves 64 Adds at once", "answer each with 200 when it is done, or 429 with Retry-After; never a locked database")
def serves_adds(probe: Probe) -> None:
    users = [probe.user() for _ in range(ADDS)]
    words = probe.at_once([partial(probe.remember, user) for user in users])
    for user, word in zip(users, words, strict=True):
        probe.expect(user, word)


@GROUP.check("serves 32 Searches at once", "answer each with 200, or 429 with Retry-After")
def serves_searches(probe: Probe) -> None:
    user = probe.user()
    word = probe.remember(user)
    probe.at_once([partial(probe.expect, user, word)] * SEARCHES)


@GROUP.check("keeps all of several Adds of one user at once", "a write must not overwrite another one of the same user")
def keeps_all_of_one(probe: Probe) -> None:
    user = probe.user()
    words = probe.at_once([partial(probe.remember, user)] * ONE_USER)
    probe.expect(user, *words)


@GROUP.check("takes a body of 42 MiB", "raise the body limit, of the proxy in front too")
def takes_large_body(probe: Probe) -> None:
    probe.needs_time()
    user, word = probe.user(), probe.word()
    text = beagle(word)
    body = probe.body(user, turn(text if probe.options.text_only else [text_part(text), *[image_part(_padded(JPEG))] * 3]))
    accepted("Add", probe.client.add(encoded(body).ljust(BODY_BYTES)))
    probe.expect(user, word, query="beagle")


def _padded(url: str) -> str:
    """The image with bytes behind its end, which decoders pass over: near the largest that is allowed."""
    return url + "A" * (IMAGE_CHARS - len(url.partition(",")[2]))
