"""Add and Search as a whole, over a real store and the hashing embedder."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from memserver.embedders.hashing import Hashing
from memserver.engine import Engine
from memserver.errors import ConfigError, Conflict, EmbedderError
from memserver.methods import load_settings
from memserver.preparing import hit_id
from memserver.types import AddRequest, Deleted, Embedder, FloatArray, Hit, Image, Message, SearchRequest

LEGS = ("bm25/chunk=1", "bm25/context=1", "bm25/session=1", "vectors/chunk=1", "vectors/session=1", "rank_bm25/chunk=1")
MAY_8 = 1_683_504_000_000  # 2023-05-08
HOUR = 3_600_000  # ms
INSTRUCTIONS = (
    "You book flights and hotels. Answer in one sentence about the trip. Never mention flights that were not booked. " * 40
    + "Now comes the question. "
)

Open = Callable[..., Engine]


@dataclass
class Spy:
    """The hashing embedder, counting what it embeds, failing on demand, and covering scripts as it is told."""

    inner: Hashing = field(default_factory=Hashing)
    seen: list[str] = field(default_factory=list)
    fails: bool = False
    covers: float = 1.0

    def embed(self, texts: Sequence[str]) -> FloatArray:
        if self.fails:
            raise RuntimeError("out of memory while embedding: " + texts[0])
        self.seen += texts
        return self.inner.embed(texts)

    def load(self) -> None: ...

    def coverage(self, text: str) -> float:
        return self.covers

    def windows(self, text: str, prefix: str) -> list[tuple[int, int]]:
        return self.inner.windows(text, prefix)

    batch_size = property(lambda self: self.inner.batch_size)
    concurrency = property(lambda self: self.inner.concurrency)
    model = property(lambda self: self.inner.model)
    dimension = property(lambda self: self.inner.dimension)
    fingerprint = property(lambda self: self.inner.fingerprint)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Open]:
    """Opens engines on one and the same data directory, as workers and restarts do. Hits show one message each unless so set."""
    opened: list[Engine] = []

    def open_engine(instance: Embedder | None = None, **settings: object) -> Engine:
        chosen = {"data_dir": str(tmp_path), "embedder": "hashing", "fold_neighbours": "false"} | settings
        opened.append(Engine.open(load_settings({}, chosen), instance))
        return opened[-1]

    yield open_engine
    for engine in opened:
        engine.close()


def add(*texts: str | Message, user: str = "ann", session: str = "s", request: str = "r", digest: str = "d") -> AddRequest:
    messages = tuple(Message("user", text) if isinstance(text, str) else text for text in texts)
    return AddRequest(request, user, session, messages, digest)


def search(engine: Engine, query: str, user: str = "ann", top_k: int = 100, options: tuple[str, ...] = ()) -> list[Hit]:
    return engine.search(SearchRequest(user, query, top_k, options))


def contents(hits: list[Hit]) -> list[object]:
    return [hit.content for hit in hits]


def test_what_was_added_is_found_at_once_and_by_its_user_alone(start: Open) -> None:
    engine = start()
    engine.add(add("I adopted a beagle"))
    engine.add(add("I bought a boat", user="bob"))
    assert contents(search(engine, "beagle boat")) == ["user: I adopted a beagle"]
    assert contents(search(engine, "beagle boat", user="bob")) == ["user: I bought a boat"]
    assert search(engine, "beagle", user="cid") == []


def test_users_whose_ids_look_alike_stay_apart(start: Open) -> None:
    engine = start()
    users = ["a", "A", "a ", "a.b", "a_b", "../a", "caf\u00e9", "cafe\u0301", "a\x00", "a" * 4096, "%", "' OR 1=1 --", "我"]
    for user in users:
        engine.add(add(f"secret of {users.index(user)}", user=user))
    assert [contents(search(engine, "secret", user=user)) for user in users] == [
        [f"user: secret of {number}"] for number in range(len(users))
    ]


def test_the_same_add_again_changes_nothing_also_after_a_restart(start: Open) -> None:
    spy = Spy()
    engine = start(spy)
    assert engine.add(add("one", "two"))
    assert not engine.add(add("one", "two"))
    assert not start().add(add("one", "two"))
    assert len(search(engine, "one two")) == 2
    assert sorted(spy.seen) == ["one\nuser: two", "one two", "user: one"]


def test_another_body_under_the_same_request_id_is_a_conflict_and_writes_nothing(start: Open) -> None:
    engine = start()
    engine.add(add("one", digest="d"))
    with pytest.raises(Conflict):
        engine.add(add("two", digest="e"))
    assert contents(search(engine, "one two")) == ["user: one"]
    engine.add(add("two", digest="e", user="bob"))  # request ids are the user's own


def test_the_same_add_many_times_at_once_is_stored_and_embedded_once(start: Open) -> None:
    spy = Spy()
    engine, other_worker = start(spy), start()
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda i: (engine if i % 4 else other_worker).add(add("one", "two")), range(32)))
    assert len(search(engine, "one two")) == len(search(other_worker, "one two")) == 2
    assert len(spy.seen) == len(set(spy.seen))


def test_a_text_that_the_user_has_already_is_not_embedded_again(start: Open) -> None:
    spy = Spy()
    engine = start(spy)
    engine.add(add("same", "same", "same", "other", request="r1"))
    engine.add(add("same", request="r2", session="t"))
    engine.add(add("same", request="r1", user="bob"))
    assert sorted(spy.seen) == ["same\nuser: other", "same\nuser: same", "user: same", "user: same"]


def test_an_embedder_that_fails_leaves_nothing_behind_and_the_retry_succeeds(start: Open) -> None:
    spy = Spy(fails=True)
    engine = start(spy)
    with pytest.raises(EmbedderError) as caught:
        engine.add(add("private matter"))
    assert "private" not in str(caught.value)
    spy.fails = False
    assert search(engine, "private") == []
    engine.add(add("private matter"))
    assert len(search(engine, "private")) == 1


def test_another_workers_adds_are_found_at_once_by_an_index_in_memory(start: Open) -> None:
    one, other = start(), start()
    for number in range(5):
        (one, other)[number % 2].add(add(f"fact {number}", request=str(number)))
        assert len(search(one, "fact")) == len(search(other, "fact")) == number + 1


@pytest.mark.parametrize("leg", LEGS)
def test_each_leg_alone_finds_each_message_after_a_restart(start: Open, leg: str) -> None:
    words = ["apple", "stone", "river", "candle", "window", "garden"]
    engine = start()
    for number, word in enumerate(words):
        engine.add(add(f"the {word} story", request=word, session=str(number % 3)))
    engine.close()
    alone = start(legs=leg, rerankers="")
    for word in words:
        assert f"user: the {word} story" in contents(search(alone, f"{word} please", top_k=3)), word


def test_results_do_not_depend_on_how_the_index_came_to_be(start: Open) -> None:
    grown = start()
    for number in range(30):
        grown.add(add(f"note {number} about topic {number % 7}", f"reply {number}", request=str(number), session=str(number % 4)))
        search(grown, "topic 3")
    expected = search(grown, "topic 3 note")
    assert len(expected) == 60
    assert search(start(), "topic 3 note") == expected
    assert [search(grown, "topic 3 note") for _ in range(5)] == [expected] * 5


def test_an_index_is_rebuilt_without_embedding_or_stemming_again(start: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = start()
    engine.add(add("one apple", "two pears"))
    expected = search(engine, "pears")
    engine.close()
    spy = Spy()
    again = start(spy)
    monkeypatch.setattr(again, "_stems", {"pears": ["pear"]}.__getitem__)  # knows the query and nothing else
    assert search(again, "pears") == expected
    assert spy.seen == ["pears"]


def test_hits_are_ordered_by_score_then_id_and_top_k_is_filled(start: Open) -> None:
    engine = start()
    engine.add(add(*["same words"] * 8, *[f"filler {number}" for number in range(12)]))
    hits = search(engine, "same words")
    assert len(hits) == 20
    assert [(-hit.score, hit.id) for hit in hits] == sorted((-hit.score, hit.id) for hit in hits)
    assert search(engine, "same words", top_k=7) == hits[:7]
    assert search(engine, "same words", top_k=10**9) == hits
    assert search(engine, "same words", top_k=0) == []


@pytest.mark.parametrize("query", ["apple", "who are you?", "完全不同的语言"])
def test_top_k_is_filled_although_no_word_matches(start: Open, query: str) -> None:
    engine = start(embedder="none", legs="bm25/chunk=1")
    engine.add(add("one apple", "two pears", "three plums", "four"))
    assert len(search(engine, query)) == 4
    assert len(search(engine, query, top_k=3)) == 3


def test_top_k_is_filled_with_short_messages_where_long_ones_do_not_fit(start: Open) -> None:
    engine = start(result_chars=1_000)
    engine.add(add(*["zebra " * 150] * 3, *[f"zebra stripe {number}" for number in range(10)]))
    hits = search(engine, "zebra zebra", top_k=5)
    assert len(hits) == 5
    assert sum(len(str(hit.content)) for hit in hits) <= 1_000


def test_images_of_a_response_stay_within_what_the_contract_allows(start: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memserver.presenter.MAX_IMAGE_BYTES", 100)
    engine = start()
    images = [Image(f"{number:064d}", "image/png", bytes(45)) for number in range(5)]
    engine.add(add(*[Message("user", "", None, (image,)) for image in images], "text"))
    hits = search(engine, "pictures")
    assert sum(isinstance(hit.content, tuple) for hit in hits) == 2
    assert "user: text" in contents(hits)


def test_windows_of_blanks_are_not_embedded(start: Open) -> None:
    spy = Spy()
    start(spy).add(add("user: a" + " " * 6_000 + "b"))
    assert spy.seen
    assert all(text.strip() for text in spy.seen)


def test_ids_are_those_that_hit_id_documents_and_tell_nothing(start: Open) -> None:
    engine = start()
    engine.add(add("one", "two", request="r9"))
    assert {hit.id for hit in search(engine, "one two")} == {hit_id("ann", "r9", 0), hit_id("ann", "r9", 1)}
    assert hit_id("a", "b\x00c", 0) != hit_id("a\x00b", "c", 0)


def test_every_part_of_a_long_message_is_found_by_the_vector_leg_alone(start: Open) -> None:
    engine = start(legs="vectors/chunk=1")
    long = " ".join(["filler words here"] * 300) + " zanzibar expedition notes " + " ".join(["more padding there"] * 300)
    engine.add(add(long, Message("assistant", "zebra"), "something else", request="r"))
    assert contents(search(engine, "zanzibar expedition notes", top_k=1)) == [f"user: {long}"]


def test_a_long_query_is_searched_whole(start: Open) -> None:
    engine = start()
    engine.add(add("the zanzibar expedition left in may", "dinner was nice", "the cat sleeps"))
    query = "please follow these instructions. " * 3_900 + "zanzibar expedition"
    assert contents(search(engine, query, top_k=1)) == ["user: the zanzibar expedition left in may"]


def test_the_date_and_the_speaker_can_be_asked_for(start: Open) -> None:
    engine = start(legs="bm25/chunk=1")
    engine.add(add(Message("Caroline", "went hiking", MAY_8), Message("Melanie", "went hiking", MAY_8 + 40 * 86_400_000)))
    assert contents(search(engine, "hiking in May 2023", top_k=1)) == ["[2023-05-08] Caroline: went hiking"]
    assert contents(search(engine, "Melanie hiking", top_k=1)) == ["[2023-06-17] Melanie: went hiking"]


def test_a_neighbouring_message_brings_an_answer_that_names_nothing(start: Open) -> None:
    engine = start(legs="bm25/context=1")
    engine.add(add("What is your favourite instrument?", "The cello, of course.", session="a", request="1"))
    engine.add(add("Nice weather", "Indeed", session="b", request="2"))
    assert "user: The cello, of course." in contents(search(engine, "favourite instrument", top_k=2))


def test_a_choice_question_gets_the_smaller_budget_and_its_options_weigh_less_than_the_query(start: Open) -> None:
    engine = start(result_chars=400, result_chars_choice=100, legs="bm25/chunk=1", rerankers="")
    engine.add(add(*[f"lunch was {dish} {'x' * 60}" for dish in ("soup", "rice", "bread")], "we met at the harbour"))
    assert len(search(engine, "lunch")) == 4
    chosen = search(engine, "where did we meet, harbour?", options=("A. soup", "B. rice"))
    assert chosen[0].content == "user: we met at the harbour"
    assert sum(len(str(hit.content)) for hit in chosen) <= 100
    assert search(engine, "", options=("A. rice",))[0].content == f"user: lunch was rice {'x' * 60}"


def test_a_blank_query_finds_nothing(start: Open) -> None:
    engine = start()
    engine.add(add("one"))
    assert search(engine, " \n") == []


def test_an_add_of_nothing_is_remembered(start: Open) -> None:
    engine = start()
    engine.add(add())
    assert search(engine, "anything") == []
    with pytest.raises(Conflict):
        engine.add(add("one", digest="e"))


def test_an_image_without_text_is_found_through_its_neighbours(start: Open) -> None:
    image = Image("ab" * 32, "image/png", b"png bytes")
    engine = start()
    engine.add(add("look at my new bicycle", Message("user", "", None, (image,)), "so shiny"))
    assert ("user:", image) in contents(search(engine, "bicycle"))


def test_a_small_index_memory_changes_no_result(start: Open) -> None:
    engine, small = start(), start(index_memory_mb=1)
    for user in map(str, range(40)):
        engine.add(add(*[f"{user} says word{number} of many" for number in range(30)], user=user))
    for user in map(str, range(40)):
        assert search(small, "word7", user=user) == search(engine, "word7", user=user)
    assert small._users.nbytes <= 2**20 < engine._users.nbytes


def test_another_embedder_on_the_same_data_is_refused(start: Open) -> None:
    start()
    with pytest.raises(ConfigError, match="dimension was '256' and is now '64'"):
        start(hashing_dimension=64)


def test_a_vector_leg_without_an_embedder_is_refused(start: Open) -> None:
    with pytest.raises(ConfigError, match="MEMSERVER_LEGS"):
        start(embedder="none")


def test_without_an_embedder_the_lexical_legs_serve(start: Open) -> None:
    engine = start(embedder="none", legs="bm25/chunk=1")
    engine.add(add("one apple", "two pears"))
    assert contents(search(engine, "pears", top_k=1)) == ["user: two pears"]
    assert (engine.describe()["dimension"], engine.describe()["mode"]) == (0, "lexical")


def test_chinese_text_is_found_by_its_bigrams(start: Open) -> None:
    engine = start(legs="bm25/chunk=1")
    engine.add(add("我昨天在公园里看到一只猫", "医生：请多喝水，注意休息", "今天的会议改到下午三点"))
    assert contents(search(engine, "会议几点开始", top_k=1)) == ["user: 今天的会议改到下午三点"]
    assert contents(search(engine, "医生说了什么", top_k=1)) == ["医生：请多喝水，注意休息"]


# --- deletion ---------------------------------------------------------------------------------------------------------


def test_a_deleted_user_is_gone_for_every_process_and_from_its_memory(start: Open) -> None:
    engines = [start(), start()]
    engines[0].add(add("I adopted a beagle"))
    for engine in engines:
        assert len(search(engine, "beagle")) == 1
        assert engine.index_bytes > 0
    assert engines[0].delete_user("ann") == Deleted(1, wiped=True)
    assert engines[0].index_bytes == 0
    assert search(engines[1], "beagle") == []
    assert engines[1].index_bytes == 0
    assert engines[0].delete_user("ann") == Deleted(0, wiped=True)


def test_a_user_deleted_elsewhere_and_not_searched_since_leaves_memory_with_the_hourly_round(start: Open) -> None:
    deleting, other = start(), start()
    for user in ("ann", "bob"):
        other.add(add("I adopted a beagle", user=user))
        search(other, "beagle", user)
    both = other.index_bytes
    deleting.delete_user("ann")
    other.tidy()
    assert other.index_bytes == both / 2
    assert len(search(other, "beagle", "bob")) == 1


# --- texts that arrive cut --------------------------------------------------------------------------------------------

PIECES = ("Log: " + "alpha beta " * 726 + "the zanz", "Log: ibar expedition left in May, " + "gamma delta " * 600)
"""Cut at 8,000 characters, within ``zanzibar``."""


@pytest.mark.parametrize("leg", ["bm25/chunk=1", "vectors/chunk=1"])
@pytest.mark.parametrize("across", [False, True], ids=["within an Add", "across Adds"])
def test_a_fact_that_a_cut_parts_is_found_by_each_leg_alone_and_shown_whole(start: Open, leg: str, across: bool) -> None:
    engine = start(legs=leg)
    for number, messages in enumerate([PIECES[:1], PIECES[1:]] if across else [PIECES]):
        engine.add(add(*messages, request=f"cut {number}"))
    engine.add(add(*[f"expedition note {number}" for number in range(20)], session="other", request="others"))
    (hit,) = search(engine, "the zanzibar expedition left in May", top_k=1)
    assert hit.id == (hit_id("ann", "cut 1", 0) if across else hit_id("ann", "cut 0", 1))
    assert "beta the zanzibar expedition left in May" in str(hit.content)
    (first,) = search(engine, "alpha beta", top_k=1)
    assert str(first.content).startswith(PIECES[0])
    assert "beta the zanzibar expedition left in May" in str(first.content)


def test_a_cut_text_changes_nothing_for_who_switches_that_off(start: Open) -> None:
    engine = start(legs="bm25/chunk=1", cut_chars=0)
    engine.add(add(*PIECES))
    assert sorted(map(str, contents(search(engine, "expedition")))) == sorted(piece.strip() for piece in PIECES)


# --- the order of delivery ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_adds_in_any_order_give_the_hits_of_their_order_in_time(start: Open, tmp_path: Path, seed: int) -> None:
    def adds() -> list[AddRequest]:
        return [
            add(
                Message("user", f"Caroline: did you see the {word} on day {number}?", MAY_8 + number * HOUR),
                Message("assistant", f"Melanie: yes, the code of the {word} is {number}", MAY_8 + number * HOUR),
                session=str(number % 3),
                request=str(number),
            )
            for number, word in enumerate(["apple", "stone", "apple", "candle"] * 6)
        ]

    serial, shuffled = (start(data_dir=str(tmp_path / name), fold_neighbours="true") for name in ("serial", "shuffled"))
    for request in adds():
        serial.add(request)
    for request in Random(seed).sample(adds(), len(adds())):
        shuffled.add(request)
    for query in (
        "What is the code of the apple?",
        "What did Melanie say on 8 May 2023?",
        "Can you recommend a stone?",
        "nothing known",
    ):
        assert search(shuffled, query, top_k=30) == search(serial, query, top_k=30), query


# --- what the query tells -----------------------------------------------------------------------------------------------


def test_an_update_that_differs_in_a_word_comes_first_and_what_held_before_stays(start: Open) -> None:
    before, after = "the code of my gym locker is 4711", "by now the code of my gym locker is 9022"
    question = "What is the code of my gym locker?"
    engine = start()
    engine.add(add(before, request="1", session="1"))
    engine.add(add("the gym is closed on Sundays", request="2", session="2"))
    engine.add(add(after, request="3", session="3"))
    assert contents(search(engine, question))[:2] == [f"user: {after}", f"user: {before}"]
    assert contents(search(start(rerankers=""), question))[:2] == [f"user: {before}", f"user: {after}"]


STORY = ("the red canoe leaks", "canoes on red rivers", "my boat has a leak", "red paint for a boat", "lunch was rice")
LEGS_OF_TWO = "bm25/chunk=1, vectors/chunk={:g}"


@pytest.mark.parametrize(
    ("query", "covers", "weight"),
    [
        ("Which canoe leaks?", 1.0, 1.0),
        ("Can you recommend a canoe that never leaks?", 1.0, 3.0),
        ("Which canoe leaks?", 0.25, 0.25),
        ("Can you recommend a canoe that never leaks?", 0.25, 3 * 0.25),
    ],
)
def test_the_vector_legs_count_more_for_advice_and_less_for_scripts_the_model_does_not_know(
    start: Open, query: str, covers: float, weight: float
) -> None:
    engine = start(Spy(covers=covers), legs=LEGS_OF_TWO.format(1), advice_boost=3)
    engine.add(add(*STORY))
    told = start(legs=LEGS_OF_TWO.format(weight), advice_boost=1)
    assert search(engine, query) == search(told, query)


def test_of_a_script_that_the_model_does_not_know_the_words_alone_count(start: Open) -> None:
    engine = start(Spy(covers=0), legs=LEGS_OF_TWO.format(1))
    engine.add(add(*STORY))
    found, by_words = (search(engine, "red canoe") for engine in (engine, start(legs="bm25/chunk=1")))
    assert len(found) == len(STORY)
    assert found[0].score == pytest.approx(by_words[0].score, rel=0.02)  # the vectors keep a hundredth of their weight
    alone, known = (search(start(Spy(covers=share), legs="vectors/chunk=1"), "red canoe") for share in (0, 1))
    assert [hit.id for hit in alone] == [hit.id for hit in known]


@pytest.mark.parametrize(
    "query",
    [
        f"{INSTRUCTIONS}\nQuestion: What is the beagle called?",
        f"{INSTRUCTIONS}What is the beagle called?",
        f"Question: What is the beagle called?\n\n{INSTRUCTIONS}",
        f"{INSTRUCTIONS}What is the beagle called?\n{INSTRUCTIONS}",
    ],
)
@pytest.mark.parametrize("legs", ["bm25/chunk=1", "vectors/chunk=1", "bm25/chunk=1, vectors/chunk=1"])
def test_instructions_do_not_drown_the_question_of_a_long_query(start: Open, query: str, legs: str) -> None:
    engine = start(legs=legs)
    engine.add(add("the beagle is called Waffles", "flights and hotels were booked for the trip", "one sentence about flights"))
    assert contents(search(engine, query, top_k=1)) == ["user: the beagle is called Waffles"]


def test_what_stands_around_the_question_counts_where_the_question_says_nothing(start: Open) -> None:
    engine = start(legs="bm25/chunk=1")
    engine.add(add("lunch was rice", "the hotel had a pool", "it rained"))
    assert contents(search(engine, f"{INSTRUCTIONS}\nQuestion: And then?", top_k=1)) == ["user: the hotel had a pool"]


# --- what a hit shows ---------------------------------------------------------------------------------------------------


def test_neighbours_are_shown_with_a_hit_where_room_is_left(start: Open) -> None:
    engine = start(fold_neighbours="true", legs="bm25/chunk=1")
    engine.add(add("What is your favourite instrument?", "The cello, of course.", "Nice."))
    (hit,) = search(engine, "cello", top_k=1)
    assert hit.id == hit_id("ann", "r", 1)
    assert hit.content == "user: What is your favourite instrument?\nuser: The cello, of course.\nuser: Nice."


def test_relative_dates_are_resolved_by_the_time_of_their_message(start: Open) -> None:
    engine = start()
    engine.add(add(Message("user", "I ran yesterday", MAY_8)))
    assert contents(search(engine, "ran")) == ["[2023-05-08] user: I ran yesterday (2023-05-07)"]
    assert contents(search(start(resolve_dates="false"), "ran")) == ["[2023-05-08] user: I ran yesterday"]
