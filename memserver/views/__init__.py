"""Views: groupings of messages that a retriever can rank.

A group's term frequencies and length are the sums over its messages, so no view is indexed: all of them are computed at
query time from the message postings, and a group that grows with the next Add needs no rewriting.
"""

from memserver.types import View
from memserver.views.chunk import ChunkView
from memserver.views.context import ContextView
from memserver.views.session import SessionView

VIEWS: dict[str, type[View]] = {"chunk": ChunkView, "context": ContextView, "session": SessionView}
