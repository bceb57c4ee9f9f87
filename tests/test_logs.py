"""What a line of the log holds, and what of an exception never gets there."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator

import pytest

from memserver import logs
from memserver.logs import formatter, place

SECRET = "the cat is called Mitzi"


@pytest.fixture
def restored_logging() -> Iterator[None]:
    """The loggers as they were: pytest has handlers of its own on the root."""
    root, own = logging.getLogger(), [logging.getLogger(name) for name in ("memserver", "uvicorn")]
    handlers, level, levels = root.handlers[:], root.level, [logger.level for logger in own]
    root.handlers.clear()
    yield
    logging.captureWarnings(False)
    root.handlers[:] = handlers
    root.setLevel(level)
    for logger, former in zip(own, levels, strict=True):
        logger.setLevel(former)


def failing() -> None:
    raise ValueError(SECRET)


def record(message: str = "said", **attributes: object) -> logging.LogRecord:
    return logging.makeLogRecord({"name": "memserver.x", "levelname": "WARNING", "msg": message} | attributes)


def test_a_line_is_one_json_object_with_the_message_its_extras_level_logger_and_time_in_utc() -> None:
    line = formatter(plain=False).format(record("stored %d\n", args=(3,), status=200, ms=1.5))
    assert "\n" not in line
    told = json.loads(line)
    assert told.pop("timestamp").endswith("Z")
    assert told == {"event": "stored 3\n", "level": "warning", "logger": "memserver.x", "status": 200, "ms": 1.5}


def test_an_id_that_is_not_valid_unicode_is_no_obstacle() -> None:
    assert json.loads(formatter(plain=False).format(record("\ud800")))["event"] == "\ud800"


def test_a_terminal_gets_plain_text() -> None:
    line = formatter(plain=True).format(record("stored", status=200))
    assert "stored" in line
    assert not line.startswith("{")


@pytest.mark.parametrize("plain", [True, False])
def test_of_an_exception_a_line_has_the_type_and_the_place_and_never_the_text(plain: bool) -> None:
    try:
        failing()
    except ValueError:
        line = formatter(plain=plain).format(record("failed", exc_info=sys.exc_info()))
    assert "ValueError" in line
    assert f"{__name__}.failing:" in line
    assert SECRET not in line


def test_the_message_that_uvicorn_repeats_for_terminals_is_left_out() -> None:
    assert "color_message" not in formatter(plain=False).format(record(color_message="said"))


def test_a_place_is_the_calls_that_led_there_outermost_first() -> None:
    with pytest.raises(ValueError, match=SECRET) as caught:
        failing()
    calls = place(caught.value).split(" > ")
    first = failing.__code__.co_firstlineno
    assert calls[-1] == f"{__name__}.failing:{first + 1}"
    assert len(calls) == 2


@pytest.mark.usefixtures("restored_logging")
def test_configured_everything_goes_to_stderr_as_json_and_libraries_from_warnings_on(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info")
    for name in ("memserver.app", "uvicorn.error", "httpx"):
        logging.getLogger(name).debug("quiet")
        logging.getLogger(name).info("usual")
        logging.getLogger(name).warning("odd")
    printed = capsys.readouterr()
    lines = [json.loads(line) for line in printed.err.splitlines()]
    assert [(line["logger"], line["event"]) for line in lines] == [
        ("memserver.app", "usual"),
        ("memserver.app", "odd"),
        ("uvicorn.error", "usual"),
        ("uvicorn.error", "odd"),
        ("httpx", "odd"),
    ]
    assert printed.out == ""
