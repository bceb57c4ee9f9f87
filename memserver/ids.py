"""What stands for a user outside of the database: in logs, in the journal, in figures."""

from __future__ import annotations

import hashlib


def user_hash(user_id: str, salt: bytes) -> str:
    """The same for one user wherever the salt (16 to 64 bytes) is, and of no use to those without it; 16 hex digits."""
    return hashlib.blake2b(user_id.encode("utf-8", "surrogatepass"), key=salt, digest_size=8).hexdigest()
