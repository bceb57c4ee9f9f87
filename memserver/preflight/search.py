"""Search: a data array of at most top_k hits, in order of relevance, the same for the same question."""

from __future__ import annotations

import math
from itertools import pairwise

from memserver.preflight.probe import QUESTION, Failed, Group, Hit, Probe, beagle, expect_status, text_of, turn

OTHER_TOPICS = [
    "The train to Lisbon leaves from platform nine.",
    "Grandmother bakes her plum cake with cinnamon.",
    "We painted the kitchen walls light green.",
    "The dentist moved to the third floor.",
    "My bicycle needs new brake pads.",
    "The library is closed on Mondays.",
    "He plays the cello in an orchestra.",
    "Their garden has eleven apple trees.",
]
TIED = 12
MESSAGES = 20  # the most that an Add carries
REPEATS = 4
GROUP = Group("search")


def _found(probe: Probe) -> list[Hit]:
    """The hits for a question among several topics; at least one."""
    user, word = probe.user(), probe.word()
    probe.store(user, *map(turn, OTHER_TOPICS), turn(beagle(word)))
    probe.expect(user, word)
    hits = probe.hits(user)
    if not hits:
        raise Failed("no hits for a question that had some just before")
    return hits


@GROUP.check(
    "answers 200 with a data array of objects", 'answer {"data": [{"id", "content"}, ...]}, no other wrapper, never null'
)
def has_data(probe: Probe) -> None:
    user = probe.user()
    probe.remember(user)
    reply = probe.search(user)
    expect_status("Search", reply, 200)
    data = reply.json.get("data") if isinstance(reply.json, dict) else None
    if not isinstance(data, list) or not all(isinstance(hit, dict) for hit in data):
        raise Failed('the answer has no array "data" of objects')


@GROUP.check("ids are non-empty strings", "give each hit the id of its memory, as a string")
def has_ids(probe: Probe) -> None:
    if bad := sum(not isinstance(hit.get("id"), str) or not hit["id"] for hit in _found(probe)):
        raise Failed(f"{bad} hits have no id, or one that is no string")


@GROUP.check("an id stays with its memory", "an id must not change when more is added")
def keeps_ids(probe: Probe) -> None:
    user = probe.user()
    word = probe.remember(user)
    probe.expect(user, word)
    before = {str(hit.get("id")) for hit in probe.hits(user) if word in text_of(hit)}
    probe.expect(user, probe.remember(user))
    if before != {str(hit.get("id")) for hit in probe.hits(user) if word in text_of(hit)}:
        raise Failed("the same memory has another id after the next Add")


@GROUP.check("contents are not empty", "leave out hits without content; the answer model reads nothing else")
def has_contents(probe: Probe) -> None:
    if bad := sum(not text_of(hit).strip() for hit in _found(probe)):
        raise Failed(f"{bad} hits have no text in their content")


@GROUP.check("contents are plain text", "return the text itself, without control characters or an encoding around it")
def has_plain_contents(probe: Probe) -> None:
    user, sentence = probe.user(), 'He said "wait" — 50% of <b>us</b>,\nthen left & laughed.'
    probe.store(user, turn(sentence))
    probe.expect(user, sentence, query="What did he say?")


@GROUP.check("scores are numbers that never rise", "higher means better: sort by score, descending, or leave it out")
def has_falling_scores(probe: Probe) -> None:
    scores = [hit["score"] for hit in _found(probe) if hit.get("score") is not None]
    if not all(isinstance(score, int | float) and not isinstance(score, bool) and math.isfinite(score) for score in scores):
        raise Failed("a score is no finite number")
    if any(later > earlier for earlier, later in pairwise(scores)):
        raise Failed("a hit scores higher than the one before it")


@GROUP.check("created_at is a time or absent", "give created_at as an ISO 8601 string, or leave it out")
def has_times(probe: Probe) -> None:
    times = [hit["created_at"] for hit in _found(probe) if hit.get("created_at") is not None]
    if not all(isinstance(time, str | int | float) and not isinstance(time, bool) and time != "" for time in times):
        raise Failed("a created_at is neither a string nor a number")


@GROUP.check("the obvious memory comes first", "order by relevance, not by time")
def is_relevant(probe: Probe) -> None:
    if "beagle" not in text_of(_found(probe)[0]):
        raise Failed("the one memory about the question is not the first hit")


def _obeys(top_k: int) -> None:
    @GROUP.check(f"obeys top_k {top_k}", "never return more than top_k hits; the platform takes an excess for an error")
    def obeys(probe: Probe) -> None:
        user = probe.user()
        for _ in range(0, top_k + 1, MESSAGES):
            probe.store(user, *[turn(beagle(probe.word())) for _ in range(MESSAGES)])
        probe.expect(user, "beagle")
        hits = len(probe.hits(user, top_k=top_k))
        if not 1 <= hits <= top_k:
            raise Failed(f"{hits} hits")


for _top_k in (1, 3, 100):
    _obeys(_top_k)


@GROUP.check("takes a missing top_k", "read a missing top_k as 100")
def takes_no_top_k(probe: Probe) -> None:
    user = probe.user()
    word = probe.remember(user)
    probe.expect(user, word)
    reply = probe.client.search({"user_id": user, "query": QUESTION})
    expect_status("Search", reply, 200)


@GROUP.check("answers an unknown user with []", 'answer 200 {"data": []}; some users are searched who never had an Add')
def knows_strangers(probe: Probe) -> None:
    if probe.hits(probe.user()):
        raise Failed("hits for a user without memories")


@GROUP.check("answers a user with blank turns only with []", "store nothing of a blank turn")
def has_nothing_of_blanks(probe: Probe) -> None:
    user = probe.user()
    probe.client.add(probe.body(user, turn(" \n\t")))
    if probe.hits(user):
        raise Failed("hits for a user who had blank turns only")


@GROUP.check("gives the same answer again", "the same question must give the same hits in the same order")
def repeats(probe: Probe) -> None:
    user, word = probe.user(), probe.word()
    probe.store(user, *map(turn, OTHER_TOPICS), turn(beagle(word)))
    probe.expect(user, word)
    _same(probe, user, top_k=100)


@GROUP.check("cuts ties at top_k the same way again", "order equal scores by id, so that the cut is always the same")
def repeats_ties(probe: Probe) -> None:
    user, text = probe.user(), beagle(probe.word())
    for _ in range(TIED):
        probe.store(user, turn(text))
    probe.expect(user, text)
    _same(probe, user, top_k=TIED // 2)


def _same(probe: Probe, user: str, top_k: int) -> None:
    first = [(hit.get("id"), hit.get("content")) for hit in probe.hits(user, top_k=top_k)]
    for _ in range(REPEATS):
        if [(hit.get("id"), hit.get("content")) for hit in probe.hits(user, top_k=top_k)] != first:
            raise Failed("the same Search gave other hits, or another order")


@GROUP.check("takes options", "options is an array of strings beside the query; use it or ignore it")
def takes_options(probe: Probe) -> None:
    user = probe.user()
    probe.expect(user, probe.remember(user), options=["A. Rex", "B. 小白", "C. None of these"])


@GROUP.check("takes a query of content parts", "a query may be an array of parts: read the text ones")
def takes_parts(probe: Probe) -> None:
    user = probe.user()
    probe.expect(user, probe.remember(user), query=[{"type": "text", "text": QUESTION}])


@GROUP.check("takes a query with NUL and a lone surrogate", "clean the query before you tokenize or embed it")
def takes_odd_query(probe: Probe) -> None:
    user = probe.user()
    probe.expect(user, probe.remember(user), query=f"\0{QUESTION}\ud83d")


@GROUP.check("ignores unknown fields", "ignore fields that you do not know")
def ignores_extras(probe: Probe) -> None:
    user = probe.user()
    probe.expect(user, probe.remember(user), filters={"a": 1}, rerank=None)
