"""The log: one line for each thing, as text or JSON, and nothing that was sent."""

import io
import json
import logging
from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy.exc import IntegrityError, OperationalError

from app.web.monitoring import RepeatedLineFilter, create_log_handler

TYPED = "correct horse battery staple"


@pytest.fixture(params=["text", "json"])
def log(request, monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """Every request is logged, in both forms."""
    monkeypatch.setattr("app.web.middleware._SLOW_REQUEST_SECONDS", 0.0)
    handler = create_log_handler(request.param)
    written = io.StringIO()
    handler.setStream(written)
    logging.getLogger("headroom").addHandler(handler)
    yield written
    logging.getLogger("headroom").removeHandler(handler)


def written_as(kind: str, record_or_error: BaseException | str) -> str:
    handler, written = create_log_handler(kind), io.StringIO()
    handler.setStream(written)
    logger = logging.getLogger("tests.of.the.log")
    logger.addHandler(handler)
    if isinstance(record_or_error, str):
        logger.warning(record_or_error)
    else:
        logger.error("it failed", exc_info=record_or_error)
    logger.removeHandler(handler)
    return written.getvalue()


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except type(error) as caught:
        return caught


def test_nothing_that_was_sent_is_in_the_log(app: FastAPI, rosa: TestClient, log: io.StringIO):
    @app.get("/raises/{word}")
    def raises(word: str) -> str:
        raise ValueError(f"cannot read {word}")

    rosa.post("/settings", data={"name": TYPED, "minutes_a_day": TYPED})
    rosa.post("/quiz/weights/w-bf16-70b/attempts", data={"answer": TYPED})
    rosa.get("/search", params={"q": TYPED})
    rosa.get(f"/concepts/{TYPED}")
    rosa.get(f"/raises/{TYPED}")
    rosa.get("/nowhere", headers={"cookie": f"theme={TYPED}", "referer": TYPED})
    said = log.getvalue()

    assert said.count("answered") == 6
    assert "horse" not in said
    assert rosa.cookies["headroom"] not in said


def test_a_line_of_json_names_request_route_status_and_time(rosa: TestClient, monkeypatch):
    monkeypatch.setattr("app.web.middleware._SLOW_REQUEST_SECONDS", 0.0)
    handler, written = create_log_handler("json"), io.StringIO()
    handler.setStream(written)
    logging.getLogger("headroom").addHandler(handler)
    answer = rosa.get("/concepts/weights")
    logging.getLogger("headroom").removeHandler(handler)

    line = json.loads(written.getvalue())

    assert line.pop("time").endswith("Z")
    assert isinstance(line.pop("milliseconds"), int)
    assert line.pop("message").startswith("request ")
    assert line == {
        "level": "WARNING",
        "logger": "headroom",
        "request": answer.headers["x-request-id"],
        "method": "GET",
        "route": "/concepts/{topic}",
        "status": 200,
    }


@pytest.mark.parametrize("kind", ["text", "json"])
def test_a_line_cannot_be_forged(kind: str):
    said = written_as(kind, "a\nrequest 1: GET / answered 200\x1b[31m\u2028b")

    assert said.count("\n") == 1
    assert "\x1b" not in said
    assert "\u2028" not in said


@pytest.mark.parametrize("kind", ["text", "json"])
def test_of_an_exception_the_place_and_the_kind_are_said(kind: str):
    said = written_as(kind, raised(ValueError(TYPED)))

    assert "in raised" in said
    assert "builtins.ValueError" in said
    assert TYPED not in said


def test_a_cause_is_said_without_its_words_as_well():
    error = raised(RuntimeError("more"))
    error.__cause__ = raised(KeyError(TYPED))

    said = written_as("text", error)

    assert said.index("builtins.KeyError") < said.index("builtins.RuntimeError")
    assert TYPED not in said


def test_what_the_system_and_the_connection_say_is_said():
    full = OSError(28, "No space left on device", TYPED)
    locked = OperationalError("INSERT", {}, Exception(f"database is locked\n{TYPED}"))

    assert "OSError: No space left on device" in written_as("text", raised(full))
    assert "database is locked" in written_as("text", raised(locked))
    assert TYPED not in written_as("text", raised(full)) + written_as("text", locked)


def test_what_a_constraint_says_holds_values_and_is_left_out():
    error = IntegrityError("INSERT", {}, Exception(f"Key (name)=({TYPED}) exists"))

    assert TYPED not in written_as("text", raised(error))


def test_a_task_that_failed_unseen_does_not_show_what_was_raised():
    handler, written = create_log_handler("text"), io.StringIO()
    handler.setStream(written)
    logger = logging.getLogger("asyncio")
    logger.addHandler(handler)

    logger.error("Task exception was never retrieved\nfuture: %s", TYPED)
    logger.removeHandler(handler)

    assert written.getvalue().endswith("ERROR Task exception was never retrieved\n")


def test_nobody_is_advised_to_install_what_the_server_does_not_use():
    advice = "No supported WebSocket library detected. Please use pip"

    assert written_as("text", advice) == ""


def test_lines_of_requests_are_written_once_a_minute_for_a_route_and_status():
    handler, written = create_log_handler("text"), io.StringIO()
    now = 0.0
    handler.filters[:] = [RepeatedLineFilter(lambda: now)]
    handler.setStream(written)
    logger = logging.getLogger("tests.of.the.log")
    logger.addHandler(handler)
    for moment in (0.0, 1.0, 2.0, 60.0):
        now = moment
        for route, status in (("/a", 408), ("/b", 408), ("/a", 200), ("/a", 500)):
            more = {"route": route, "status": status}
            logger.warning("request %s answered %d", route, status, extra=more)
    logger.removeHandler(handler)

    lines = [line.partition("WARNING ")[2] for line in written.getvalue().splitlines()]
    for name in ("/a answered 408", "/b answered 408", "/a answered 200"):
        assert [line for line in lines if name in line] == [
            f"request {name}",
            f"request {name} (2 more since the last time)",
        ]
    assert lines.count("request /a answered 500") == 4


def test_a_warning_that_strangers_can_cause_is_written_once_a_minute_with_a_count():
    seconds = iter((0.0, 1.0, 59.0, 60.0, 61.0))
    handler, written = create_log_handler("text"), io.StringIO()
    handler.filters[:] = [RepeatedLineFilter(lambda: next(seconds))]
    handler.setStream(written)
    logger = logging.getLogger("uvicorn.of.the.tests")
    logger.addHandler(handler)
    for _ in range(5):
        logger.warning("Invalid HTTP request received.")
        logger.error("an error is written each time", exc_info=ValueError())
    logger.removeHandler(handler)

    lines = written.getvalue().splitlines()
    assert sum("each time" in line for line in lines) == 5
    assert [line.partition("WARNING ")[2] for line in lines if "WARNING" in line] == [
        "Invalid HTTP request received.",
        "Invalid HTTP request received. (2 more since the last time)",
    ]
