"""The log: one JSON object a line on stderr, plain lines on a terminal. The only user of structlog."""

from __future__ import annotations

import logging
import sys
from traceback import walk_tb

import structlog
from structlog.typing import EventDict, WrappedLogger


def configure(level: str) -> None:
    """Send every logger's lines to stderr: those of memserver and uvicorn from ``level`` on, those of libraries from warnings."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter(plain=sys.stderr.isatty()))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.captureWarnings(True)
    for name in ("memserver", "uvicorn"):
        logging.getLogger(name).setLevel(level.upper())


def formatter(*, plain: bool) -> logging.Formatter:
    """Renders a record and its ``extra`` as JSON, or for people; of an exception only its type and place."""
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.stdlib.ExtraAdder(),
            _without_values,
        ],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.dev.ConsoleRenderer() if plain else structlog.processors.JSONRenderer(),
        ],
    )


def place(error: BaseException) -> str:
    """The calls that led to ``error``, outermost first, as names and lines of code: no values, no text."""
    calls = ((frame.f_globals["__name__"], frame.f_code.co_qualname, line) for frame, line in walk_tb(error.__traceback__))
    return " > ".join(f"{module}.{name}:{line}" for module, name, line in calls)


def _without_values(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    event.pop("color_message", None)  # uvicorn's message once more, for terminals
    match event.pop("exc_info", None):
        case (_, BaseException() as error, _):  # its text may quote what a user sent
            event.update(error=type(error).__name__, place=place(error))
    return event
