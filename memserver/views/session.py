"""View ``session``: all messages of a session together; its score counts for each of them."""

from dataclasses import dataclass

import numpy as np

from memserver.types import IntArray, Layout


@dataclass(frozen=True)
class SessionView:
    """Group s is the session with ordinal s."""

    def count(self, layout: Layout) -> int:
        return layout.session_count

    def memberships(self, layout: Layout, messages: IntArray) -> tuple[IntArray, IntArray]:
        return np.arange(len(messages), dtype=np.int32), layout.sessions[messages]

    def home(self, layout: Layout) -> IntArray:
        return layout.sessions
