"""The words of the pipeline and the Protocols that its stages keep. Imports nothing of ours.

Data flow::

    Add    -> Message -> Entry (stems, Chunks with vectors) -> Store
    Search -> Query -> Retriever over a View: Ranked -> Fuser: Ranked -> Rerankers: Ranked -> presenter: Hit

Scores: higher is better, everywhere. Ties: equal scores are ordered by the hit's id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int32]
CountArray = npt.NDArray[np.uint16]
SeqArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float32]
ScoreArray = npt.NDArray[np.float64]
IdArray = npt.NDArray[np.bytes_]
DayArray = npt.NDArray[np.datetime64]


# --- what Add carries -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Image:
    """An inline image; ``digest`` is the SHA-256 of ``data`` in hex, under which it is stored once for each user."""

    digest: str
    mime: str
    data: bytes = field(repr=False)


Part = str | Image
"""A piece of a message's content, in the order received."""


@dataclass(frozen=True, slots=True)
class Message:
    """One element of Add's ``messages`` after cleaning. ``text`` joins the text parts; ``timestamp`` is Unix milliseconds.

    ``parts`` is empty unless the message carries images.
    """

    role: str
    text: str = field(repr=False)
    timestamp: int | None = None
    parts: tuple[Part, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class AddRequest:
    """An Add as read from its body. ``digest`` identifies the body (SHA-256, hex) whatever its spacing and key order."""

    request_id: str
    user_id: str
    session_id: str
    messages: tuple[Message, ...] = field(repr=False)
    digest: str


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A Search as read from its body."""

    user_id: str
    query: str = field(repr=False)
    top_k: int
    options: tuple[str, ...] = field(default=(), repr=False)


# --- what is stored ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Chunk:
    """A window of a message's text that was embedded. ``vector``: (dimension,), unit length.

    ``text_hash`` identifies what was embedded: the window with its date and speaker, and with what it goes on from.
    """

    text_hash: bytes
    vector: FloatArray = field(repr=False)


@dataclass(frozen=True, slots=True)
class Traits:
    """What rerankers want to know of a message, seen once when it is added.

    ``length``: characters. ``speaker``: the stems of the name in its label, empty where the label names a role or is missing.
    ``asking``: the share of its text that are questions, 0 to 1. ``placed``: the first timestamp (Unix ms) of its Add, by which
    the Adds of a session are put in order. ``continues``: the id of the message whose cut-off text goes on in this one.
    """

    length: int
    speaker: tuple[str, ...] = ()
    asking: float = 0.0
    placed: int | None = None
    continues: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A message with all that the indexes need of it: distinct stems, their counts (same length), chunks and traits."""

    id: str
    message: Message
    stems: tuple[str, ...] = field(repr=False)
    counts: CountArray = field(repr=False)
    chunks: tuple[Chunk, ...] = field(repr=False)
    traits: Traits


@dataclass(frozen=True, slots=True)
class Head:
    """Where a user's log stands: ``seq`` of its last message (1, 2, ..., with gaps where a purge was) and the ``epoch``.

    Every deletion changes the epoch; no sequence number is used twice within one.
    """

    seq: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Row:
    """What an index reads back of one message. ``vectors``: (chunks, dimension) float32, in window order."""

    seq: int
    id: str
    session_id: str
    timestamp: int | None
    traits: Traits = field(repr=False)
    stems: Sequence[str] = field(repr=False)
    counts: CountArray = field(repr=False)
    vectors: FloatArray = field(repr=False)


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """What the presenter reads back of one message."""

    seq: int
    id: str
    session_id: str
    message: Message


@dataclass(frozen=True, slots=True)
class Deleted:
    """What a deletion did. ``wiped``: the log has no byte of it left; else readers were busy, and the hourly round wipes."""

    messages: int
    wiped: bool


class Store(Protocol):
    """The only truth. Every method that touches memories takes the user's id; all raise ``StoreError`` if the database fails."""

    def find_request(self, user_id: str, request_id: str) -> str | None:
        """The digest of the Add that was stored under this key, None if there is none."""

    def known_vectors(self, user_id: str, text_hashes: Sequence[bytes]) -> dict[bytes, FloatArray]:
        """Vectors of texts that this user already has, by ``text_hash``."""

    def append(self, request: AddRequest, entries: Sequence[Entry], received: datetime | None = None) -> bool:
        """Write an Add in one transaction. False if the very same Add was stored before (nothing is written then).

        ``received`` is when the Add came, if not now.
        Raises ``Conflict`` if the request id was used with another body.
        """

    def head(self, user_id: str) -> Head | None:
        """The user's head, None for a user without data."""

    def read_since(self, user_id: str, seen: Head | None) -> tuple[Head | None, list[Row]]:
        """The head and the rows after ``seen``, in one snapshot; all rows if the epoch is another one or ``seen`` is None."""

    def messages(self, user_id: str, seqs: Sequence[int], max_image_bytes: int) -> dict[int, StoredMessage]:
        """Messages by sequence number; left out is one that is gone, or whose images would pass ``max_image_bytes`` in all.

        Images count in the order of ``seqs``, as often as they are shown.
        """

    def last_said(self, user_id: str, session_id: str) -> StoredMessage | None:
        """The last message stored of this session, if it is among the user's last few dozen."""

    def delete(self, user_id: str) -> Deleted:
        """Delete all of a user's data; of an unknown user, nothing."""

    def tidy(self, before: datetime | None) -> None:
        """Delete all Adds received before a time, and the traces of what was deleted; nothing if it was done within the hour."""

    def close(self) -> None: ...


# --- what is searched -------------------------------------------------------------------------------------------------


class Period(Protocol):
    """Days that a question speaks of: an interval, or a month or day of any year."""

    def contains(self, days: DayArray, grace: int) -> npt.NDArray[np.bool_]:
        """Which of ``days`` lie in it or at most ``grace`` days behind its end; (n,) -> (n,), NaT never."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query as the retrievers see it: weights by stem, and one unit vector a window of its text, (windows, dimension).

    ``vector_weight``: how much the vector legs count for this query, beside 1 for what the settings say.
    """

    terms: Mapping[str, float] = field(repr=False)
    vectors: FloatArray = field(repr=False)
    vector_weight: float = 1.0
    periods: Sequence[Period] = field(default=(), repr=False)
    text: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Ranked:
    """A ranked list: ``entries`` are message positions in the user's index, ``scores`` theirs, both (n,), best first."""

    entries: IntArray
    scores: ScoreArray

    def __len__(self) -> int:
        return len(self.entries)


class Layout(Protocol):
    """How a user's messages lie: positions 0..n-1 in the order stored."""

    def __len__(self) -> int: ...

    @property
    def ids(self) -> IdArray:
        """The hit id of each message, (n,), ASCII."""

    @property
    def sessions(self) -> IntArray:
        """The session's ordinal of each message, (n,)."""

    @property
    def session_count(self) -> int: ...

    @property
    def previous(self) -> IntArray:
        """The position of the message before this one in its session, (n,), -1 for none."""

    @property
    def following(self) -> IntArray:
        """The position of the message after this one in its session, (n,), -1 for none."""

    @property
    def days(self) -> DayArray:
        """The UTC day of each message, (n,) datetime64[D], NaT where it has none."""

    @property
    def lengths(self) -> IntArray:
        """Characters of each message, (n,)."""

    @property
    def asking(self) -> FloatArray:
        """The share of each message that are questions, (n,), 0 to 1."""

    @property
    def speakers(self) -> IntArray:
        """Who says each message: the speaker's number, (n,), -1 where nobody is named."""

    @property
    def named(self) -> Mapping[str, Sequence[int]]:
        """The numbers of the speakers who have this stem in their name."""

    @property
    def continued(self) -> IntArray:
        """The position of the message whose cut-off text goes on in this one, (n,), -1 for none."""

    @property
    def continuing(self) -> IntArray:
        """The position of the message in which this one's cut-off text goes on, (n,), -1 for none."""


class View(Protocol):
    """A grouping of messages. What is indexed are messages; a group's statistics are sums over its messages."""

    def count(self, layout: Layout) -> int:
        """How many groups there are."""

    def memberships(self, layout: Layout, messages: IntArray) -> tuple[IntArray, IntArray]:
        """All (index into ``messages``, group) pairs, as two arrays of one length."""

    def home(self, layout: Layout) -> IntArray:
        """The group whose score a message gets, (n,)."""


class Retriever(Protocol):
    """One index of one user: grows by rows, ranks messages for a query through a view."""

    needs_vectors: ClassVar[bool]

    def add(self, rows: Sequence[Row]) -> None: ...

    def search(self, query: Query, view: View, layout: Layout, depth: int) -> Ranked:
        """The ``depth`` best messages; messages tied with the last one are kept too."""

    @property
    def nbytes(self) -> int:
        """An estimate of the memory held, in bytes."""


class Fuser(Protocol):
    """Several ranked lists and their weights -> one list of at least the ``depth`` best, with scores within [0, 1]."""

    def fuse(self, lists: Sequence[tuple[Ranked, float]], layout: Layout, depth: int) -> Ranked: ...


@dataclass(frozen=True, slots=True)
class Scene:
    """What a reranker may look at beside the list. ``messages``: positions (n,) -> their messages, None for one that is gone."""

    query: Query
    layout: Layout
    messages: Callable[[IntArray], Sequence[Message | None]] = field(repr=False)


class Reranker(Protocol):
    """A ranked list -> the same entries with other scores, higher is better; the engine puts them in order."""

    def rerank(self, ranked: Ranked, scene: Scene) -> Ranked: ...


@runtime_checkable
class Loadable(Protocol):
    """A method that must be made ready before its first use."""

    def load(self) -> None:
        """Raises ``ConfigError`` where what it needs can't be had."""


class Embedder(Protocol):
    """Text -> vectors. Deterministic: a text's vector does not depend on the other texts of the call (to 1e-3)."""

    @property
    def batch_size(self) -> int:
        """How many texts a call of ``embed`` should carry at most."""

    @property
    def concurrency(self) -> int:
        """How many calls of ``embed`` may run at once."""

    @property
    def model(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    @property
    def fingerprint(self) -> str:
        """Identifies the weights; vectors of different fingerprints must never be mixed."""

    def load(self) -> None:
        """Make ready for ``embed``. Raises ``ConfigError`` where the model can't be had."""

    def coverage(self, text: str) -> float:
        """How well the model knows the scripts of ``text``: 1 for all of it, 0 for none."""

    def windows(self, text: str, prefix: str) -> list[tuple[int, int]]:
        """Character windows of ``text`` that fit the model together with ``prefix``: sorted, overlapping, covering all of it.

        An empty text has no window.
        """

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """Unit vectors, (len(texts), dimension) float32. Raises ``EmbedderError``."""


@dataclass(frozen=True, slots=True)
class Hit:
    """What Search returns of one message. ``created_at`` is ISO 8601 in UTC; ``content`` has Images where the message has."""

    id: str
    content: str | tuple[Part, ...] = field(repr=False)
    score: float
    created_at: str | None = None
