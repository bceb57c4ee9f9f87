"""The database's files are damaged while the server is down."""

from __future__ import annotations

from pathlib import Path
from random import Random

from benchmark.outcome import Outcome
from benchmark.server import Refused, Server
from benchmark.traffic import ALL, Traffic
from benchmark.trial import Trial, integrity

USERS, ADDS = 6, 10
PAGE_BYTES = 16_384
PAGES = 3  # damaged at a time
ADVICE = ("restore a copy", "use another data directory")


def wal_truncated(trial: Trial) -> Outcome:
    """The end of the write-ahead log is lost: what is left is whole Adds, and sending all again completes them."""
    chance = Random(trial.seed)
    adds = trial.adds(USERS, ADDS)
    with trial.server() as (server, traffic):
        for add in adds:
            traffic.add(add)
        server.kill()
        log = _beside(server, "-wal")
        with log.open("r+b") as file:
            file.truncate(chance.randrange(log.stat().st_size // 4, log.stat().st_size))
        server.start()
        traffic.acknowledged.clear()  # no software can give back what the disk has lost
        traffic.problems += integrity(server.database) + traffic.audit()
        for add in adds:
            traffic.add(add)
        traffic.problems += integrity(server.database) + traffic.audit()
    return Outcome("a log cut at a random byte: whole Adds alone are left, and complete after a replay", traffic.problems)


def shm_garbage(trial: Trial) -> Outcome:
    """The shared memory file, which SQLite makes anew from the log, holds garbage after a kill."""
    with trial.server() as (server, traffic):
        for add in trial.adds(USERS, ADDS):
            traffic.add(add)
        server.kill()
        _beside(server, "-shm").write_bytes(Random(trial.seed).randbytes(2 * PAGE_BYTES))
        server.start()
        traffic.problems += integrity(server.database) + traffic.audit()
    return Outcome("nothing is lost", traffic.problems)


def header(trial: Trial) -> Outcome:
    """The first page is garbage: no start, and advice."""
    with trial.server() as (server, traffic):
        _filled(server, traffic)
        with server.database.open("r+b") as file:
            file.write(Random(trial.seed).randbytes(100))
        _refused(server, traffic)
    return Outcome("a database whose header is garbage is refused at the start, with advice", traffic.problems)


def page(trial: Trial) -> Outcome:
    """Pages in the middle are garbage, a few at a time: refused at the start, or 503 with advice, or the whole truth."""
    chance = Random(trial.seed)
    refused = answered = 0
    with trial.server(started=False) as (server, traffic):
        server.start()
        _filled(server, traffic)
        intact = server.database.read_bytes()
        for _ in range(trial.rounds):
            damaged = bytearray(intact)
            for number in chance.sample(range(1, len(intact) // PAGE_BYTES), k=PAGES):
                damaged[number * PAGE_BYTES : (number + 1) * PAGE_BYTES] = chance.randbytes(PAGE_BYTES)
            server.database.write_bytes(damaged)
            try:
                server.start()
            except Refused as error:
                _advised(traffic, error.said)
                refused += 1
                continue
            answered += _answers_truly(traffic)
            server.kill()
            for suffix in ("-wal", "-shm"):
                _beside(server, suffix).unlink(missing_ok=True)
        for reason in traffic.reasons:
            _advised(traffic, reason)
    detail = f"{PAGES} of {len(intact) // PAGE_BYTES} pages: {refused} starts refused, {answered} searches whole, others 503"
    return Outcome(detail, traffic.problems, trial.rounds)


def _filled(server: Server, traffic: Traffic) -> None:
    """A database without a log, in which short messages fill B-tree pages, and nothing overflows."""
    author = traffic.author
    for number in range(ADDS):
        for user in range(USERS):
            traffic.add(author.add(author.user(user), number))
    server.stop()


def _beside(server: Server, suffix: str) -> Path:
    return server.database.with_name(server.database.name + suffix)


def _refused(server: Server, traffic: Traffic) -> None:
    try:
        server.start()
    except Refused as error:
        _advised(traffic, error.said)
    else:
        traffic.note("the server started on a damaged database")


def _advised(traffic: Traffic, said: str) -> None:
    if not any(advice in said for advice in ADVICE):
        traffic.note("a damaged database is refused without advice")


def _answers_truly(traffic: Traffic) -> int:
    """How many users get all that is theirs; one who gets less without an error is a problem."""
    return sum(_answer_truly(traffic, user) for user in sorted({sent.user for sent in traffic.sent.values()}))


def _answer_truly(traffic: Traffic, user: str) -> bool:
    before = traffic.statuses["/search", 200]
    hits = traffic.search(user, traffic.author.sentinel(user), ALL, expected=(200, 503))
    if traffic.statuses["/search", 200] == before:
        return False
    wanted = sorted(id for sent in traffic.sent.values() if sent.user == user for id in sent.ids)
    if sorted(hit["id"] for hit in hits) != wanted:
        traffic.note("a search of a damaged database was answered in part, as if that were all")
    return True
