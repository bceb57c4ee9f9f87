"""What every Store keeps, then what SqliteStore adds. A second Store joins by one more param of the ``open_store`` fixture."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlite_utils.cli import cli

from memserver.erasure import USER_TABLES
from memserver.errors import Conflict, EmbedderError, StoreError
from memserver.migrations import MIGRATIONS, PAGE_BYTES
from memserver.store import RECENT, SqliteStore
from memserver.types import AddRequest, Chunk, Deleted, Entry, FloatArray, Head, Image, Message, Part, Store, Traits

DIMENSION = 4
MAX_IMAGES = 1000  # bytes

STAMP = {"embedder": "hashing", "model": "hashing-4", "dimension": str(DIMENSION), "fingerprint": "f1", "analyzer": "porter"}
ROOT = Path(__file__).parents[1]
Open = Callable[[], Store]
TWINS = ["a", "A", "a ", " a", "a\0", "a\0b", "\u00e9", "e\u0301", "x" * 4096, "x" * 4097]
ODD_IDS = [*TWINS, "'; DROP TABLE users; --", "%", "_", "a:b/../c", "🙂"]


def unit(*values: float) -> FloatArray:
    vector = np.array(values, np.float32)
    return vector / np.float32(np.linalg.norm(vector))


def chunk(text: str, vector: FloatArray | None = None) -> Chunk:
    return Chunk(hashlib.sha256(text.encode()).digest()[:16], unit(1, 0, 0, 0) if vector is None else vector)


def entry(text: str, id: str = "m", parts: tuple[Part, ...] = (), chunks: Sequence[Chunk] | None = None) -> Entry:
    counts = Counter(text.split())
    message = Message("user", text, 1_700_000_000_000, parts)
    stored = [chunk(text)] if chunks is None else chunks
    return Entry(id, message, tuple(counts), np.array(list(counts.values()), np.uint16), tuple(stored), Traits(len(text)))


def add(store: Store, user: str, request: str, *entries: Entry, session: str = "s", digest: str | None = None) -> bool:
    messages = tuple(e.message for e in entries)
    digest = f"digest of {request}" if digest is None else digest
    return store.append(AddRequest(request, user, session, messages, digest), entries)


def image(data: bytes) -> Image:
    return Image(hashlib.sha256(data).hexdigest(), "image/png", data)


def ids(store: Store, user: str, seen: Head | None = None) -> list[str]:
    return [row.id for row in store.read_since(user, seen)[1]]


@pytest.fixture(params=["sqlite"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens the same data once more, as another worker or a later start does."""
    opened: list[Store] = []
    makers: dict[str, Open] = {"sqlite": lambda: SqliteStore(tmp_path / "data" / "memories.db", STAMP)}

    def open_again() -> Store:
        opened.append(makers[request.param]())
        return opened[-1]

    yield open_again
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: Open) -> Store:
    return open_store()


# --- append and read back ---------------------------------------------------------------------------------------------


def test_a_user_without_an_add_has_no_head_no_rows_no_messages(store: Store) -> None:
    assert store.head("u") is None
    assert store.read_since("u", None) == (None, [])
    assert store.read_since("u", Head(3, 1)) == (None, [])
    assert store.messages("u", [1], MAX_IMAGES) == {}
    assert store.known_vectors("u", [b"h"]) == {}
    assert store.find_request("u", "r") is None
    assert store.delete("u") == Deleted(0, wiped=True)


def test_traits_and_timestamps_come_back_as_they_were(store: Store) -> None:
    traits = [Traits(3, ("ann", "lee"), 0.25, 1_699_999_999_999, "m0"), Traits(1)]
    add(store, "u", "r", *(replace(entry("a", f"m{n}"), traits=seen) for n, seen in enumerate(traits, 1)))
    rows = store.read_since("u", None)[1]
    assert [row.traits for row in rows] == traits
    assert [row.timestamp for row in rows] == [1_700_000_000_000] * 2


def test_the_last_message_of_a_session_is_found_among_the_users_recent_ones(store: Store) -> None:
    add(store, "u", "1", entry("a", "m1"), entry("b", "m2"), session="s")
    add(store, "u", "2", entry("c", "m3"), session="other")
    add(store, "v", "1", entry("d", "m4"), session="s")
    said = store.last_said("u", "s")
    assert said is not None
    assert (said.id, said.message.text) == ("m2", "b")
    assert store.last_said("u", "nothing yet") is None
    add(store, "u", "3", *(entry("e", f"e{n}") for n in range(RECENT)), session="other")
    assert store.last_said("u", "s") is None


def test_rows_come_back_with_stems_counts_and_vectors_of_each_message(store: Store) -> None:
    long = entry("a b a", "m1", chunks=[chunk("a b", unit(1, 0, 0, 0)), chunk("b a", unit(0, 3, 4, 0))])
    add(store, "u", "r", long, entry("", "m2", chunks=[]), entry("c", "m3", chunks=[chunk("c", unit(0, 0, 0, 1))]), session="s1")
    head, rows = store.read_since("u", None)
    assert head is not None
    assert head.seq == 3
    assert [(row.seq, row.id, row.session_id, list(row.stems), row.counts.tolist()) for row in rows] == [
        (1, "m1", "s1", ["a", "b"], [2, 1]),
        (2, "m2", "s1", [], []),
        (3, "m3", "s1", ["c"], [1]),
    ]
    assert [row.vectors.shape for row in rows] == [(2, DIMENSION), (0, DIMENSION), (1, DIMENSION)]
    assert {row.vectors.dtype for row in rows} == {np.dtype(np.float32)}
    assert rows[0].counts.dtype == np.uint16
    np.testing.assert_allclose(rows[0].vectors, np.array([[1, 0, 0, 0], [0, 3 / 5, 4 / 5, 0]]), atol=1e-3)


def test_messages_come_back_by_sequence_number_without_those_that_are_gone(store: Store) -> None:
    add(store, "u", "r1", entry("one", "m1"), session="s1")
    add(store, "u", "r2", entry("two", "m2"), session="s2")
    found = store.messages("u", [2, 7, 1], MAX_IMAGES)
    assert {seq: (m.seq, m.id, m.session_id, m.message) for seq, m in found.items()} == {
        1: (1, "m1", "s1", Message("user", "one", 1_700_000_000_000)),
        2: (2, "m2", "s2", Message("user", "two", 1_700_000_000_000)),
    }


def test_more_keys_than_a_statement_takes_are_all_found(store: Store) -> None:
    texts = [f"text {n}" for n in range(1201)]
    add(store, "u", "r", *(entry(text) for text in texts))
    assert list(store.messages("u", range(1, 1202), MAX_IMAGES)) == list(range(1, 1202))
    assert len(store.known_vectors("u", [chunk(text).text_hash for text in texts])) == 1201


@pytest.mark.parametrize("timestamp", [None, -1, 0, 253_402_300_800_000])
def test_a_timestamp_comes_back_as_it_was(store: Store, timestamp: int | None) -> None:
    message = Message("assistant", "x", timestamp)
    add(store, "u", "r", Entry("m", message, (), np.array([], np.uint16), (), Traits(0)))
    assert store.messages("u", [1], MAX_IMAGES)[1].message == message


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_any_valid_text_comes_back_unchanged(store: Store, text: str) -> None:
    store.delete(text)  # of an earlier example
    add(store, text, text, entry(text, text), session=text, digest=text)
    stored = store.messages(text, [1], MAX_IMAGES)[1]
    assert (stored.message.text, stored.id, stored.session_id) == (text, text, text)
    assert store.find_request(text, text) == text


def test_odd_user_ids_are_exact_and_never_see_each_other(store: Store) -> None:
    for user in ODD_IDS:
        add(store, user, "r", entry(user, user))
    assert [ids(store, user) for user in ODD_IDS] == [[user] for user in ODD_IDS]
    store.delete("a")
    assert [len(ids(store, user)) for user in ODD_IDS] == [0] + [1] * (len(ODD_IDS) - 1)


def test_odd_request_ids_are_distinct(store: Store) -> None:
    assert all(add(store, "u", request, entry("x")) for request in ODD_IDS)
    assert not any(add(store, "u", request, entry("x")) for request in ODD_IDS)


def test_an_add_without_messages_is_remembered_and_makes_the_user(store: Store) -> None:
    assert add(store, "u", "r")
    head, rows = store.read_since("u", None)
    assert (head and head.seq, rows) == (0, [])
    assert not add(store, "u", "r")
    add(store, "u", "r2", entry("x"))
    assert store.head("u") == Head(1, head.epoch if head else -1)


# --- images -----------------------------------------------------------------------------------------------------------


def test_parts_come_back_in_order_with_their_images(store: Store) -> None:
    cat, dog = image(b"\x89PNG cat"), image(b"\x89PNG dog")
    parts: tuple[Part, ...] = (cat, "and", dog, '{"image": "x"}', cat)
    add(store, "u", "r1", entry("and", parts=parts))
    add(store, "u", "r2", entry("", parts=(cat,)), entry("plain"))
    found = store.messages("u", [1, 2, 3], MAX_IMAGES)
    assert [found[seq].message.parts for seq in (1, 2, 3)] == [parts, (cat,), ()]


def test_an_image_of_one_user_survives_the_deletion_of_another(store: Store) -> None:
    add(store, "u", "r", entry("", parts=(image(b"png"),)))
    add(store, "v", "r", entry("", parts=(image(b"png"),)))
    store.delete("u")
    assert store.messages("v", [1], MAX_IMAGES)[1].message.parts == (image(b"png"),)


# --- vectors ----------------------------------------------------------------------------------------------------------


def test_known_vectors_are_those_of_this_user_only(store: Store) -> None:
    add(store, "u", "r", entry("a", chunks=[chunk("a", unit(3, 4, 0, 0))]), entry("a", chunks=[chunk("a", unit(3, 4, 0, 0))]))
    key, other = chunk("a").text_hash, chunk("b").text_hash
    known = store.known_vectors("u", [key, other])
    assert list(known) == [key]
    np.testing.assert_allclose(known[key], [3 / 5, 4 / 5, 0, 0], atol=1e-3)
    assert store.known_vectors("v", [key]) == {}


def test_a_known_vector_stored_again_does_not_drift(store: Store) -> None:
    add(store, "u", "r1", entry("a", chunks=[chunk("a", unit(1, 2, 3, 4))]))
    known = store.known_vectors("u", [chunk("a").text_hash])
    add(store, "u", "r2", entry("a", chunks=[chunk("a", known[chunk("a").text_hash])]))
    _, (first, second) = store.read_since("u", None)
    assert first.vectors.tolist() == second.vectors.tolist()


def test_a_vector_of_another_dimension_is_refused_and_nothing_is_written(store: Store) -> None:
    with pytest.raises(EmbedderError, match="dimension"):
        add(store, "u", "r", entry("a"), entry("b", chunks=[chunk("b", np.ones(DIMENSION + 1, np.float32))]))
    assert store.head("u") is None


# --- idempotency ------------------------------------------------------------------------------------------------------


def test_a_replay_writes_nothing_also_after_a_restart(store: Store, open_store: Open) -> None:
    assert add(store, "u", "r", entry("x"))
    assert not add(store, "u", "r", entry("x"))
    store.close()
    later = open_store()
    assert not add(later, "u", "r", entry("x"))
    assert later.find_request("u", "r") == "digest of r"
    assert len(ids(later, "u")) == 1


def test_the_same_request_id_with_another_body_is_a_conflict_once_and_for_all(store: Store) -> None:
    add(store, "u", "r", entry("x"))
    before = store.head("u")
    for _ in range(2):
        with pytest.raises(Conflict, match="new request_id"):
            add(store, "u", "r", entry("y"), digest="other")
    assert store.head("u") == before
    assert add(store, "u", "r2", entry("z"))


def test_a_request_id_belongs_to_its_user(store: Store) -> None:
    assert add(store, "u", "r", entry("x"), digest="1")
    assert add(store, "v", "r", entry("x"), digest="2")


# --- epochs and deletion ----------------------------------------------------------------------------------------------


def test_delete_removes_all_of_one_user_and_counts_the_messages(store: Store) -> None:
    for user in ("u", "v"):
        add(store, user, "r", entry("x", parts=(image(b"png"),)), entry("y"))
    assert store.delete("u") == Deleted(2, wiped=True)
    assert store.read_since("u", None) == (None, [])
    assert store.find_request("u", "r") is None
    assert store.known_vectors("u", [chunk("x").text_hash]) == {}
    assert store.messages("u", [1, 2], MAX_IMAGES) == {}
    assert len(ids(store, "v")) == 2


def test_a_user_made_anew_has_another_epoch_and_is_read_from_the_start(store: Store) -> None:
    add(store, "u", "r", entry("x", "old1"), entry("y", "old2"))
    seen = store.head("u")
    store.delete("u")
    assert add(store, "u", "r", entry("z", "new1"), entry("z", "new2"), entry("z", "new3"))
    now = store.head("u")
    assert seen is not None
    assert now is not None
    assert (now.seq, now.epoch != seen.epoch) == (3, True)
    assert ids(store, "u", seen) == ["new1", "new2", "new3"]


# --- the log, in any cut ----------------------------------------------------------------------------------------------


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    adds=st.lists(st.tuples(st.sampled_from("uv"), st.integers(0, 5), st.integers(0, 3)), max_size=12),
    cuts=st.lists(st.integers(0, 12), max_size=4),
)
def test_what_was_appended_with_replays_is_read_back_in_any_cut(
    store: Store, adds: list[tuple[str, int, int]], cuts: list[int]
) -> None:
    """``adds``: (user, request, number of messages); a request that comes again is a replay. ``cuts``: after how many adds."""
    logs: dict[str, list[str]] = {"u": [], "v": []}
    for user in logs:
        store.delete(user)  # of an earlier example
    heads: list[dict[str, Head | None]] = [dict.fromkeys(logs)]
    done: set[tuple[str, int]] = set()
    for user, request, size in adds:
        entries = [entry("t", f"{user}:{request}:{n}", chunks=[chunk("c")] * n) for n in range(size)]
        assert add(store, user, str(request), *entries) is ((user, request) not in done)
        if (user, request) not in done:
            logs[user] += [e.id for e in entries]
        done.add((user, request))
        heads.append({name: store.head(name) for name in logs})
    for user, log in logs.items():
        for seen in [None, *(heads[min(cut, len(adds))][user] for cut in cuts)]:
            after = seen.seq if seen else 0
            head, rows = store.read_since(user, seen)
            assert head == heads[-1][user]
            assert [row.seq for row in rows] == list(range(after + 1, len(log) + 1))
            assert [row.id for row in rows] == log[after:]
            assert [len(row.vectors) for row in rows] == [int(row.id.split(":")[2]) for row in rows]


# --- several workers --------------------------------------------------------------------------------------------------


def test_two_stores_on_the_same_data_see_each_others_appends(store: Store, open_store: Open) -> None:
    other = open_store()
    add(store, "u", "r1", entry("x", "m1"))
    seen = other.head("u")
    assert ids(other, "u") == ["m1"]
    add(other, "u", "r2", entry("y", "m2"))
    assert ids(store, "u", seen) == ["m2"]
    assert not add(store, "u", "r2", entry("y", "m2"))
    other.delete("u")
    assert store.head("u") is None


def test_appends_of_8_threads_to_2_stores_give_one_gapless_sequence(store: Store, open_store: Open) -> None:
    stores = (store, open_store())
    jobs = [(thread, n) for n in range(6) for thread in range(8)]

    def work(job: tuple[int, int]) -> list[int]:
        thread, n = job
        worker = stores[thread % 2]
        add(worker, "u", f"{thread}:{n}", *(entry("x", f"{thread}:{n}:{k}") for k in range(3)))
        return [row.seq for row in worker.read_since("u", None)[1]]

    with ThreadPoolExecutor(8) as pool:
        snapshots = list(pool.map(work, jobs))
    assert all(seqs == list(range(1, len(seqs) + 1)) for seqs in snapshots)
    stored = ids(store, "u")
    assert len(stored) == 6 * 8 * 3
    assert sorted(stored) == sorted(f"{thread}:{n}:{k}" for thread, n in jobs for k in range(3))
    starts = [stored.index(f"{thread}:{n}:0") for thread, n in jobs]
    assert all(stored[i : i + 3] == [f"{thread}:{n}:{k}" for k in range(3)] for (thread, n), i in zip(jobs, starts, strict=True))


def test_the_same_add_sent_by_8_threads_at_once_is_stored_once(store: Store, open_store: Open) -> None:
    stores = (store, open_store())
    with ThreadPoolExecutor(8) as pool:
        written = list(pool.map(lambda n: add(stores[n % 2], "u", "r", entry("x")), range(8)))
    assert sum(written) == 1
    assert len(ids(store, "u")) == 1


def test_more_readers_than_connections_all_read(store: Store) -> None:
    add(store, "u", "r", entry("x", "m"))
    with ThreadPoolExecutor(32) as pool:
        assert list(pool.map(lambda _: ids(store, "u"), range(200))) == [["m"]] * 200


def test_a_closed_store_says_so_and_closes_twice(store: Store) -> None:
    store.close()
    store.close()
    with pytest.raises(StoreError, match="shutting down"):
        store.head("u")
    with pytest.raises(StoreError, match="shutting down"):
        add(store, "u", "r", entry("x"))


# --- SqliteStore: its file --------------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "memories.db"


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[sqlite3.Connection]:
    """Every connection that is opened during the test."""
    opened: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def recording(*args: object, **kwargs: object) -> sqlite3.Connection:
        opened.append(connect(*args, **kwargs))  # type: ignore[call-overload]
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", recording)
    return opened


def counts(path: Path) -> dict[str, int]:
    with sqlite3.connect(path) as db:
        found = {table: int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]) for table in USER_TABLES}
    db.close()
    return found


def run_sql(path: Path, sql: str) -> None:
    with sqlite3.connect(path) as db:
        db.execute(sql)
    db.close()


def test_every_connection_is_durable_and_overwrites_what_it_deletes(path: Path, connections: list[sqlite3.Connection]) -> None:
    store = SqliteStore(path, STAMP)
    store.head("u")
    pragmas = ("journal_mode", "synchronous", "secure_delete", "page_size", "busy_timeout")
    full, on, milliseconds = 2, 1, 30 * 1000
    assert [[db.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas] for db in connections] == [
        ["wal", full, on, PAGE_BYTES, milliseconds]
    ] * 2
    assert store.schema == len(MIGRATIONS)
    store.close()


def test_sqlite_utils_shows_readable_tables(path: Path) -> None:
    store = SqliteStore(path, STAMP)
    add(store, "u", "r", entry("hello world", "m1", parts=("hello world", image(b"png"))))
    store.close()

    def shown(*command: str) -> list[dict[str, object]]:
        rows: list[dict[str, object]] = json.loads(CliRunner().invoke(cli, [command[0], str(path), *command[1:]]).output)
        return rows

    assert {row["table"]: row["count"] for row in shown("tables", "--counts")} == {
        "_sqlite_migrations": len(MIGRATIONS), "meta": len(STAMP) + 1, "journal": 0, **dict.fromkeys(USER_TABLES, 1)
    }  # fmt: skip
    assert [(row["user_id"], row["head"]) for row in shown("rows", "users")] == [("u", 1)]
    (message,) = shown("rows", "messages")
    assert (message["role"], message["text"]) == ("user", "hello world")
    assert json.loads(str(message["parts"])) == [{"text": "hello world"}, {"image": image(b"png").digest}]
    assert [row["stems"] for row in shown("rows", "postings")] == ["hello world"]
    assert {row["key"]: row["value"] for row in shown("rows", "meta") if row["key"] != "salt"} == STAMP


def test_image_bytes_are_stored_once_a_user(path: Path) -> None:
    store = SqliteStore(path, STAMP)
    for user in ("u", "v"):
        for n in range(3):
            add(store, user, f"r{n}", entry("", parts=(image(b"png"), image(b"png"))))
    assert counts(path)["images"] == 2
    store.close()


def test_delete_leaves_no_byte_of_the_user_in_any_file(path: Path) -> None:
    store = SqliteStore(path, STAMP)
    add(store, "marked-user", "marked-request", *(entry("marked-text " * n, "marked-id") for n in (1, 2000)))
    add(store, "other", "r", entry("kept-text"))
    assert b"marked" in b"".join(file.read_bytes() for file in path.parent.iterdir())
    store.delete("marked-user")
    assert b"marked" not in b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert counts(path) == {**dict.fromkeys(USER_TABLES, 1), "images": 0}
    store.close()


def test_delete_says_whether_a_reader_kept_old_bytes_in_the_log(path: Path) -> None:
    store, reading = SqliteStore(path, STAMP, busy_timeout=0), sqlite3.connect(path, isolation_level=None)
    for user in "uv":
        add(store, user, "r", entry("x"))
    reading.execute("BEGIN")
    reading.execute("SELECT * FROM users").fetchall()
    assert store.delete("u") == Deleted(1, wiped=False)
    reading.execute("COMMIT")
    assert store.delete("v") == Deleted(1, wiped=True)
    reading.close()
    store.close()


def test_no_statement_reads_or_writes_memories_without_the_users_id(path: Path, connections: list[sqlite3.Connection]) -> None:
    SqliteStore(path, STAMP).close()
    connections.clear()
    store = SqliteStore(path, STAMP)
    store.head("u")
    traced: list[str] = []
    for db in connections:
        db.set_trace_callback(traced.append)
    add(store, "u", "r", entry("x", parts=(image(b"png"),)))
    add(store, "u", "r", entry("x"))
    store.find_request("u", "r")
    store.known_vectors("u", [b"h"])
    store.read_since("u", None)
    store.messages("u", [1], MAX_IMAGES)
    store.delete("u")
    store.close()
    statements = [sql for sql in traced if not re.match(r"BEGIN|COMMIT|INSERT INTO journal", sql)]
    inserted = r"""INSERT INTO \w+ \("?user_id"?, .*\) VALUES \('u', """
    keyed = re.compile(rf"(SELECT|DELETE) .* WHERE user_id = 'u'|{inserted}", re.DOTALL)
    assert [sql for sql in statements if not keyed.match(sql)] == []
    assert {table for table in USER_TABLES if any(re.search(rf"\b{table}\b", sql) for sql in statements)} == set(USER_TABLES)


# --- SqliteStore: failures --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", USER_TABLES)
def test_a_write_that_fails_anywhere_leaves_nothing_and_the_store_usable(path: Path, table: str) -> None:
    store = SqliteStore(path, STAMP)
    written = entry("x", parts=(image(b"png"),))
    run_sql(path, f"CREATE TRIGGER broken BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'broken'); END")
    with pytest.raises(StoreError):
        add(store, "u", "r", written)
    assert counts(path) == dict.fromkeys(USER_TABLES, 0)
    run_sql(path, "DROP TRIGGER broken")
    assert add(store, "u", "r", written)
    assert counts(path) == dict.fromkeys(USER_TABLES, 1)
    store.close()


def test_a_delete_that_fails_deletes_nothing(path: Path) -> None:
    store = SqliteStore(path, STAMP)
    add(store, "u", "r", entry("x", parts=(image(b"png"),)))
    run_sql(path, "CREATE TRIGGER broken BEFORE DELETE ON users BEGIN SELECT RAISE(ABORT, 'broken'); END")
    with pytest.raises(StoreError):
        store.delete("u")
    assert counts(path) == dict.fromkeys(USER_TABLES, 1)
    store.close()


def test_a_full_disk_is_told_and_overcome(path: Path, connections: list[sqlite3.Connection]) -> None:
    store = SqliteStore(path, STAMP)
    (writer,) = connections
    add(store, "u", "r1", entry("x"))
    pages = int(writer.execute("PRAGMA page_count").fetchone()[0])
    writer.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreError, match="disk is full") as failed:
        add(store, "u", "r2", entry("secret " * 20_000))
    assert "secret" not in str(failed.value)
    assert len(ids(store, "u")) == 1
    assert store.find_request("u", "r2") is None
    writer.execute("PRAGMA max_page_count = 1000000")
    assert add(store, "u", "r2", entry("secret " * 20_000))
    store.close()


def test_a_lock_held_too_long_is_told_and_overcome(path: Path) -> None:
    store = SqliteStore(path, STAMP, busy_timeout=0.05)
    add(store, "u", "r1", entry("x"))
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="try again"):
        add(store, "u", "r2", entry("y"))
    assert len(ids(store, "u")) == 1
    holder.execute("ROLLBACK")
    holder.close()
    assert add(store, "u", "r2", entry("y"))
    store.close()


def test_an_error_of_the_caller_leaves_no_transaction_open(path: Path, connections: list[sqlite3.Connection]) -> None:
    store = SqliteStore(path, STAMP)
    with pytest.raises(UnicodeEncodeError):
        add(store, "u", "r", entry("x"), entry("y", id="\ud800"))
    with pytest.raises(UnicodeEncodeError):
        store.head("\ud800")
    assert [db.in_transaction for db in connections] == [False, False]
    assert add(store, "u", "r", entry("x"))
    store.close()


# --- SqliteStore: a crash -------------------------------------------------------------------------------------------

APPEND = """
import sys
from pathlib import Path
from memserver.store import SqliteStore
from tests.test_store import STAMP, add, entry
store = SqliteStore(Path(sys.argv[1]), STAMP)
for n in range(1, 10**6):
    add(store, "u", f"r{n}", entry(f"text {n}", f"m{n}"))
    print(n, flush=True)
"""


def test_a_killed_process_loses_nothing_that_it_acknowledged(path: Path) -> None:
    command = [sys.executable, "-c", APPEND, str(path)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for _ in range(30):
        process.stdout.readline()
    process.kill()
    acknowledged = max([30, *map(int, process.communicate()[0].splitlines())])
    store = SqliteStore(path, STAMP)
    stored = ids(store, "u")
    assert len(stored) in (acknowledged, acknowledged + 1)
    assert stored == [f"m{n}" for n in range(1, len(stored) + 1)]
    assert [store.find_request("u", f"r{n}") for n in range(1, acknowledged + 1)] == [
        f"digest of r{n}" for n in range(1, acknowledged + 1)
    ]
    assert counts(path)["chunks"] == counts(path)["postings"] == counts(path)["requests"] == len(stored)
    store.close()


def test_the_salt_is_made_once_and_each_database_has_its_own(tmp_path: Path) -> None:
    def salt(name: str) -> bytes:
        store = SqliteStore(tmp_path / name, STAMP)
        store.close()
        return store.salt

    first = salt("a.db")
    assert len(first) == 16
    assert salt("a.db") == first != salt("b.db")


def test_its_size_is_that_of_its_files(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.db", STAMP)
    (tmp_path / "a.db.copy").write_bytes(b"not of the database")
    assert store.nbytes == sum((tmp_path / name).stat().st_size for name in ("a.db", "a.db-wal", "a.db-shm"))
    store.close()
    assert store.nbytes == (tmp_path / "a.db").stat().st_size
