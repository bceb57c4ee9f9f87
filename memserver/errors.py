"""Domain errors: raised inside, mapped to a status code once, in ``app``.

Every message tells its reader what to do, and none carries the content of a memory, a query or a key.
"""


class MemserverError(Exception):
    """Base of all errors that memserver raises on purpose."""


class BadRequest(MemserverError):
    """A request that can't be read; ``field`` names what is wrong with it, never its content."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field


class Unauthorized(MemserverError):
    """The key is missing or wrong."""


class Conflict(MemserverError):
    """The request id was used before with another body; nothing was written."""

    def __init__(self) -> None:
        super().__init__(
            "nothing was written, this request_id was used before with another body: send new content under a new request_id"
        )


class Stalled(MemserverError):
    """The client stopped in the middle of a body."""


class BodyTooLarge(MemserverError):
    """The body is over the configured limit."""


class TooManyRequests(MemserverError):
    """More requests are in flight than the configured limit."""

    retry_after = 1  # seconds


class Unavailable(MemserverError):
    """Something that is needed for the answer fails for now; nothing was written, the same request may be sent again."""

    retry_after = 5  # seconds


class EmbedderError(Unavailable):
    """The embedder failed or gave vectors that can't be used."""


class EmbedderRefused(EmbedderError):
    """The embedder works, but not for these texts; others of the same call may do."""


class StoreError(Unavailable):
    """The database can't be read or written for now (locked, disk full)."""


class ConfigError(MemserverError):
    """A setting, a model or a database that memserver must not start with."""
