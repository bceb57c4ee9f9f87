"""Indexes as caches: they catch up, they are dropped with their epoch, they are evicted by bytes."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from threading import Thread

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from indexes import query, row, rows

from memserver.errors import StoreError
from memserver.retrievers.bm25 import BM25
from memserver.types import AddRequest, Deleted, Entry, FloatArray, Head, Retriever, Row, StoredMessage, Traits
from memserver.users import IndexStats, UserIndexes, UserLayout
from memserver.views import VIEWS


class FakeStore:
    """A store in memory; ``reads`` counts the rows handed out."""

    def __init__(self) -> None:
        self.users: dict[str, tuple[int, list[Row]]] = {}
        self.reads = 0
        self.fails = False

    def put(self, user: str, *texts: str, epoch: int = 1) -> None:
        known = self.users.get(user)
        stored = known[1] if known and known[0] == epoch else []
        stored += [row(len(stored) + i, text) for i, text in enumerate(texts, 1)]
        self.users[user] = epoch, stored

    def read_since(self, user_id: str, seen: Head | None) -> tuple[Head | None, list[Row]]:
        if self.fails:
            raise StoreError("no")
        if user_id not in self.users:
            return None, []
        epoch, stored = self.users[user_id]
        after = seen.seq if seen and seen.epoch == epoch else 0
        self.reads += len(stored) - after
        return Head(len(stored), epoch), stored[after:]

    def head(self, user_id: str) -> Head | None:
        raise NotImplementedError

    def find_request(self, user_id: str, request_id: str) -> str | None:
        raise NotImplementedError

    def known_vectors(self, user_id: str, text_hashes: Sequence[bytes]) -> dict[bytes, FloatArray]:
        raise NotImplementedError

    def append(self, request: AddRequest, entries: Sequence[Entry], received: datetime | None = None) -> bool:
        raise NotImplementedError

    def messages(self, user_id: str, seqs: Sequence[int], max_image_bytes: int) -> dict[int, StoredMessage]:
        raise NotImplementedError

    def last_said(self, user_id: str, session_id: str) -> StoredMessage | None:
        raise NotImplementedError

    def delete(self, user_id: str) -> Deleted:
        raise NotImplementedError

    def tidy(self, before: datetime | None) -> None:
        raise NotImplementedError

    def close(self) -> None: ...


def build() -> Mapping[str, Retriever]:
    return {"bm25": BM25()}


def found(indexes: UserIndexes, user: str, text: str) -> list[int]:
    with indexes.current(user) as index:
        hits = index.retrievers["bm25"].search(query(text), VIEWS["chunk"](), index.layout, 10)
    return [int(entry) for entry in hits.entries]


@pytest.fixture
def store() -> FakeStore:
    return FakeStore()


def test_an_index_reads_only_the_rows_that_it_lacks(store: FakeStore) -> None:
    indexes = UserIndexes(store, build, 2**30)
    store.put("ann", "red", "green")
    assert found(indexes, "ann", "red") == [0]
    store.put("ann", "red")
    assert found(indexes, "ann", "red") == [0, 2]
    assert store.reads == 2 + 1


def test_another_epoch_drops_the_index(store: FakeStore) -> None:
    indexes = UserIndexes(store, build, 2**30)
    store.put("ann", "red", "green")
    assert found(indexes, "ann", "green") == [1]
    store.put("ann", "green", epoch=2)
    assert found(indexes, "ann", "green") == [0]
    del store.users["ann"]
    assert found(indexes, "ann", "green") == []
    assert (len(indexes), indexes.nbytes) == (0, 0)


def test_a_user_without_data_takes_no_place(store: FakeStore) -> None:
    indexes = UserIndexes(store, build, 2**30)
    assert found(indexes, "nobody", "red") == []
    assert len(indexes) == 0


def test_the_users_searched_longest_ago_are_evicted_and_rebuilt_when_needed(store: FakeStore) -> None:
    for user in ("ann", "bob", "cid"):
        store.put(user, "red")
    indexes = UserIndexes(store, build, 2**30)
    found(indexes, "ann", "red")
    one = indexes.nbytes
    indexes = UserIndexes(store, build, 2 * one + one // 2)
    for user in ("ann", "bob", "ann", "cid"):
        found(indexes, user, "red")
    assert (len(indexes), indexes.nbytes) == (2, 2 * one)
    store.reads = 0
    assert found(indexes, "ann", "red") == [0]
    assert store.reads == 0  # bob went, not ann
    assert found(indexes, "bob", "red") == [0]
    assert store.reads == 1
    hits, misses = 2, 3 + 1  # ann twice; each user's first search, and bob's after it was evicted
    assert indexes.stats() == IndexStats(2, 2 * one, hits, misses, evictions=2)


def test_an_index_larger_than_the_limit_is_kept_while_it_is_the_last_one_used(store: FakeStore) -> None:
    indexes = UserIndexes(store, build, 1)
    store.put("ann", "red")
    found(indexes, "ann", "red")
    found(indexes, "ann", "red")
    assert store.reads == 1


def test_a_store_that_fails_leaves_the_index_usable(store: FakeStore) -> None:
    indexes = UserIndexes(store, build, 2**30)
    store.put("ann", "red")
    found(indexes, "ann", "red")
    store.fails = True
    with pytest.raises(StoreError):
        found(indexes, "ann", "red")
    store.fails = False
    store.put("ann", "red")
    assert found(indexes, "ann", "red") == [0, 1]
    assert store.reads == 2


def test_many_threads_see_every_row_once(store: FakeStore) -> None:
    indexes = UserIndexes(store, build, 2**30)
    results: list[list[int]] = []

    def search() -> None:
        for _ in range(20):
            results.append(found(indexes, "ann", "red"))

    store.put("ann", *["red"] * 5)
    threads = [Thread(target=search) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[0, 1, 2, 3, 4]] * 160


def test_neighbours_are_those_of_the_same_session_across_appends() -> None:
    stored = rows(("a", "1"), ("b", "2"), ("a", "3"), ("a", "4"), ("b", "5"))
    at_once, one_by_one = UserLayout(), UserLayout()
    at_once.add(stored)
    for one in stored:
        one_by_one.add([one])
    for made in (at_once, one_by_one):
        assert made.sessions.tolist() == [0, 1, 0, 0, 1]
        assert made.previous.tolist() == [-1, -1, 0, 2, 1]
        assert made.following.tolist() == [2, 4, 3, -1, -1]
        assert made.ids.tolist() == [one.id.encode() for one in stored]


# --- the layout -------------------------------------------------------------------------------------------------------


def said(seq: int, placed: int | None, continues: str | None = None, session: str = "s") -> Row:
    return row(seq, "text", session, timestamp=placed, traits=Traits(4, placed=placed, continues=continues))


def chain(made: UserLayout) -> list[str]:
    """The ids of a session's messages from the first to the last, as neighbours."""
    at = int(np.flatnonzero(made.previous < 0)[0])
    found = []
    while at >= 0:
        found.append(made.ids[at].decode())
        assert made.following[at] < 0 or made.previous[made.following[at]] == at
        at = int(made.following[at])
    return found


@given(st.permutations(range(5)))
def test_neighbours_follow_the_adds_timestamps_whatever_the_order_of_delivery(order: list[int]) -> None:
    adds = [[said(10 * n + i, 1000 * n) for i in range(2)] for n in range(5)]
    made = UserLayout()
    for n in order:
        made.add(adds[n])
    assert chain(made) == [message.id for rows in adds for message in rows]


def test_adds_of_one_time_or_none_stay_in_the_order_of_arrival() -> None:
    made = UserLayout()
    made.add([said(1, 5000), said(2, None), said(3, 5000), said(4, 4000)])
    assert chain(made) == [said(seq, 0).id for seq in (4, 1, 2, 3)]


def test_a_cut_text_knows_its_pieces_and_one_whose_beginning_is_gone_has_none() -> None:
    first = said(1, 1000)
    made = UserLayout()
    made.add([first, said(2, 1000, session="other")])
    made.add([said(3, 1000, continues=first.id), said(4, 1000, continues="f" * 24)])
    assert made.continued.tolist() == [-1, -1, 0, -1]
    assert made.continuing.tolist() == [2, -1, -1, -1]


def test_speakers_are_found_by_the_stems_of_their_names() -> None:
    made = UserLayout()
    names: list[tuple[str, ...]] = [("ann", "lee"), (), ("bob", "lee"), ("ann", "lee")]
    made.add([row(seq, "text", traits=Traits(4, name)) for seq, name in enumerate(names, 1)])
    assert made.speakers.tolist() == [0, -1, 1, 0]
    assert made.named == {"ann": [0], "lee": [0, 1], "bob": [1]}


def test_days_are_those_of_the_timestamps_in_utc_and_none_where_there_is_none_to_name() -> None:
    made = UserLayout()
    made.add([row(seq, "text", timestamp=stamp) for seq, stamp in enumerate([86_400_000, -1, None, 10**18], 1)])
    assert made.days.astype(str).tolist() == ["1970-01-02", "1969-12-31", "NaT", "NaT"]
