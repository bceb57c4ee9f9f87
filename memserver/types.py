"""The words of the pipeline and the Protocols that its stages keep. Imports nothing of ours.

Data flow::

    Add    -> Message -> Entry (stems, Chunks with vectors) -> Store
    Search -> Query -> Retriever over a View: Ranked -> Fuser: Ranked -> Reranker: Ranked -> Hit

Scores: higher is better, everywhere. Ties: equal scores are ordered by the hit's id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int32]
CountArray = npt.NDArray[np.uint16]
FloatArray = npt.NDArray[np.float32]
ScoreArray = npt.NDArray[np.float64]
IdArray = npt.NDArray[np.bytes_]


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
    """A window ``[start, end)`` of a message's text, in characters. ``vector``: (dimension,), unit length.

    ``text_hash`` identifies the text that was embedded: the window with its date and speaker.
    """

    start: int
    end: int
    text_hash: bytes
    vector: FloatArray = field(repr=False)


@dataclass(frozen=True, slots=True)
class Entry:
    """A message with all that the indexes need of it: distinct stems, their counts (same length) and chunks."""

    id: str
    message: Message
    stems: tuple[str, ...] = field(repr=False)
    counts: CountArray = field(repr=False)
    chunks: tuple[Chunk, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Head:
    """Where a user's log stands: ``seq`` of its last message (1, 2, ... without gaps) and the ``epoch`` that a delete changes."""

    seq: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Row:
    """What an index reads back of one message. ``vectors``: (chunks, dimension) float32, in window order."""

    seq: int
    id: str
    session_id: str
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


class Store(Protocol):
    """The only truth. Every method that touches memories takes the user's id; all raise ``StoreError`` if the database fails."""

    def find_request(self, user_id: str, request_id: str) -> str | None:
        """The digest of the Add that was stored under this key, None if there is none."""

    def known_vectors(self, user_id: str, text_hashes: Sequence[bytes]) -> dict[bytes, FloatArray]:
        """Vectors of texts that this user already has, by ``text_hash``."""

    def append(self, request: AddRequest, entries: Sequence[Entry]) -> bool:
        """Write an Add in one transaction. False if the very same Add was stored before (nothing is written then).

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

    def delete(self, user_id: str) -> int:
        """Delete all of a user's data; the number of messages deleted."""

    def close(self) -> None: ...


# --- what is searched -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Query:
    """A query as the retrievers see it: weights by stem, and one unit vector a window of its text, (windows, dimension)."""

    terms: Mapping[str, float] = field(repr=False)
    vectors: FloatArray = field(repr=False)


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


class Reranker(Protocol):
    """A ranked list -> a ranked list of the same entries, scores in descending order again."""

    def rerank(self, ranked: Ranked, layout: Layout) -> Ranked: ...


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
