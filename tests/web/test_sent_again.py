"""A form that the server cannot take now comes back with what was entered."""

import contextlib
import re
from collections.abc import AsyncIterator, Callable
from html import unescape

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.database.tables import Learner
from app.errors import AppError
from app.main import create_app
from app.settings import Settings
from tests.conftest import visit
from tests.quiz.conftest import Fields

BUSY = "The database is busy just now."


class BusyDatabaseError(AppError):
    """What the app says while it cannot write."""

    status = 503


class FullDiskError(AppError):
    """What the app says while there is no room."""

    status = 507


@pytest.fixture(params=[BusyDatabaseError, FullDiskError])
def refusal(request: pytest.FixtureRequest) -> type[AppError]:
    found: type[AppError] = request.param
    return found


@pytest.fixture
def locked(app: FastAPI, refusal: type[AppError]) -> Callable[[], None]:
    """Nobody can write, until this is called."""
    turn = app.state.open_write_session

    @contextlib.asynccontextmanager
    async def refused() -> AsyncIterator[Session]:
        raise refusal(BUSY)
        yield

    app.state.open_write_session = refused
    return lambda: setattr(app.state, "open_write_session", turn)


def form_on(page: str) -> Fields:
    """The form that sends it again."""
    action = re.search(r'<form class="stack" method="post" action="([^"]+)"', page)
    assert action
    form = Fields(unescape(action[1]))
    form.feed(page)
    return form


@pytest.mark.usefixtures("locked")
@pytest.mark.parametrize(
    ("address", "fields"),
    [
        ("/flashcards/weights-1/reviews", {"token": "weights-1.0", "rating": "3"}),
        ("/exams/sittings/1/answers/1", {"answer": "5 GB", "go": "next", "shown": ""}),
        ("/settings", {"name": 'Rosa & "Milo" <b>', "minutes_a_day": "45"}),
        (
            "/concepts/weights/notes",
            {"section": "", "words": "Two\nlines, and ünïcode"},
        ),
        ("/exams/short/sittings?of=now", {"token": "t", "factor": "1.5"}),
    ],
)
def test_every_field_is_in_a_form_that_leads_to_the_same_address(
    rosa: TestClient,
    refusal: type[AppError],
    address: str,
    fields: dict[str, str],
) -> None:
    answer = rosa.post(address, data=fields)

    assert answer.status_code == refusal.status
    assert BUSY in answer.text
    form = form_on(answer.text)
    assert unescape(form.action) == address
    assert form.values == fields
    for words in fields.values():
        assert "<b>" not in answer.text or words != fields.get("name")


@pytest.mark.usefixtures("locked")
def test_what_was_entered_can_be_read_there_without_what_the_form_added(
    rosa: TestClient,
) -> None:
    fields = {"words": "My own words", "token": "abc", "section": "a-section"}

    page = rosa.post("/concepts/weights/notes", data=fields).text

    assert "<dt>Your words</dt><dd>My own words</dd>" in page
    assert "<dd>abc</dd>" not in page


def test_sent_again_it_is_taken(rosa: TestClient, locked, session: Session) -> None:
    page = rosa.post("/settings", data={"name": "Rosa", "minutes_a_day": "45"}).text
    form = form_on(page)
    locked()

    answer = rosa.post(form.action, data=form.values)

    assert answer.status_code in {200, 303}
    session.rollback()
    assert session.exec(select(Learner.name)).one() == "Rosa"


@pytest.mark.usefixtures("locked")
def test_htmx_gets_the_sentence_alone(rosa: TestClient) -> None:
    rosa.headers["HX-Request"] = "true"

    answer = rosa.post("/settings", data={"name": "Rosa"})

    assert BUSY in answer.text
    assert "<form" not in answer.text


def test_who_waits_in_vain_for_a_slot_gets_the_form_back(
    settings: Settings, clock, live_course, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("app.web.middleware._LONGEST_WAIT", 0.01)
    slots = {"pages": 8, "forms": 0, "estimates": 8, "files": 32}
    monkeypatch.setattr("app.main._SLOTS", slots)

    with visit(create_app(settings, clock, live_course)) as rosa:
        answer = rosa.post("/settings", data={"name": "Rosa Meyer"})

    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "60"
    assert "The server is busy just now." in answer.text
    assert form_on(answer.text).values["name"] == "Rosa Meyer"
