"""The statistics are computed beside the requests, kept, and shown with their age."""

import asyncio
import csv
import io
import threading
from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from sqlalchemy import delete, event, func, select

from app.authoring import statistics_cache as survey
from app.authoring import statistics_tables as bench
from app.authoring.statistics_cache import StatisticsCache
from app.content.library import LiveLibrary
from app.database.tables import Attempt, Learner
from tests.loops import outcome


def counts(client) -> dict[str, str]:
    text = client.get("/authoring/questions?format=csv").text
    return {row["item"]: row["count"] for row in csv.DictReader(io.StringIO(text[1:]))}


class Gate:
    """A course that is not handed out before the gate is opened."""

    def __init__(self, library: LiveLibrary) -> None:
        self._library = library
        self._open = threading.Event()

    def current(self):
        self._open.wait(60)
        return self._library.current()

    def open(self) -> None:
        self._open.set()


@pytest.fixture
def gate(app: FastAPI, client, clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """Statistics that are not computed before the gate is opened."""
    monkeypatch.setattr("app.authoring.statistics_cache._PATIENCE", 0.01)
    gate = Gate(app.state.library)
    app.state.surveyors[""] = StatisticsCache(app.state.engine, gate, clock)
    yield gate
    gate.open()
    client.portal.call(app.state.surveyors[""].close)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every computation counts as a long one."""
    monkeypatch.setattr("app.authoring.statistics_cache._QUICK", 0.0)


@pytest.fixture
def read(app: FastAPI) -> list[int]:
    """Behind which rows answers were read, one number for each statement."""
    found: list[int] = []

    def note(_connection, _cursor, statement, parameters, *_rest) -> None:
        if "attempt.parsed" in statement:
            values = parameters.values() if isinstance(parameters, dict) else parameters
            found.append(next(v for v in values if not isinstance(v, bool)))

    event.listen(app.state.engine, "before_cursor_execute", note)
    return found


def test_new_answers_are_added_to_those_that_were_read(client, crowd, library, read):
    crowd.all_answer(library.questions.values(), crowd.join(12))
    assert counts(client)["k-trade"] == "12"
    last = crowd.session.scalar(select(func.max(Attempt.id)))
    crowd.all_answer(library.questions.values(), crowd.join(3))

    assert counts(client)["k-trade"] == "15"

    assert read == [0, last]


def test_without_new_answers_none_is_read(client, crowd, library, read):
    crowd.all_answer(library.questions.values(), crowd.join(12))

    counts(client)
    counts(client)

    assert read == [0]


def test_who_erased_everything_leaves_the_statistics(client, crowd, library):
    learners = crowd.join(12)
    crowd.all_answer(library.questions.values(), learners)
    counts(client)

    crowd.session.execute(delete(Learner).where(Learner.id == learners[0]))
    crowd.session.commit()

    assert counts(client)["k-trade"] == "11"


def test_an_erasure_shows_also_where_as_many_answers_took_the_numbers(client, crowd, library):
    one, other = library.questions["k-trade"], library.questions["w-bf16-70b"]
    learners = crowd.join(12)
    for learner in learners:
        crowd.answer(one, learner, 1.0)
    crowd.session.commit()
    assert counts(client)["k-trade"] == "12"

    number = crowd.session.scalar(select(func.max(Attempt.id)))
    crowd.session.execute(delete(Learner).where(Learner.id == learners[-1]))
    crowd.answer(other, learners[0], 1.0, id=number)
    crowd.session.commit()

    found = counts(client)
    assert (found["k-trade"], found["w-bf16-70b"]) == ("11", "1")


@pytest.mark.usefixtures("gate")
def test_until_the_first_are_there_the_page_says_so_and_asks_again(client):
    answer = client.get("/authoring/questions")

    assert answer.status_code == 200
    assert "The statistics are being computed." in answer.text
    assert 'hx-trigger="every 2s"' in answer.text
    assert "http-equiv" not in answer.text  # nobody's reading is cut short


@pytest.mark.usefixtures("gate")
def test_until_then_a_spreadsheet_is_refused_for_now(client):
    answer = client.get("/authoring/questions?format=csv")

    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "5"


@pytest.mark.usefixtures("gate")
def test_until_then_a_question_is_shown_without_them(client):
    html = client.get("/authoring/questions/k-trade").text

    assert "As learners see it" in html
    assert "Reload this page in a few seconds to see them." in html


def test_once_they_are_there_they_are_shown(client, gate: Gate, crowd, library):
    crowd.all_answer(library.questions.values(), crowd.join(12))
    client.get("/authoring/questions")
    gate.open()

    while "being computed" in (html := client.get("/authoring/questions").text):
        pass  # each waits a little for them

    assert "All, " in html


@pytest.mark.usefixtures("slow")
def test_those_that_took_long_are_shown_with_their_age(client, crowd, library, clock):
    crowd.all_answer(library.questions.values(), crowd.join(12))
    client.get("/authoring/questions")
    crowd.all_answer(library.questions.values(), crowd.join(3))
    clock.tick(minutes=2)

    html = client.get("/authoring/questions").text

    assert "Computed 2\u00a0minutes ago." in html
    assert counts(client)["k-trade"] == "12"


def test_those_that_were_quick_are_of_this_moment(client, crowd, library, clock):
    crowd.all_answer(library.questions.values(), crowd.join(12))
    client.get("/authoring/questions")
    clock.tick(minutes=2)

    assert "Computed just now." in client.get("/authoring/questions").text


def test_many_who_look_at_once_wait_for_one_computation(app: FastAPI, crowd, library, read):
    crowd.all_answer(library.questions.values(), crowd.join(12))
    surveyor: StatisticsCache = app.state.surveyors[""]

    async def look() -> None:
        await asyncio.gather(*(surveyor.newest() for _ in range(20)))

    outcome(look())

    assert read == [0]


def test_the_table_is_made_once_for_what_has_not_changed(client, crowd, library, monkeypatch):
    made = []
    monkeypatch.setattr(
        survey, "build_question_rows", lambda *of: made.append(of) or bench.build_question_rows(*of)
    )
    crowd.all_answer(library.questions.values(), crowd.join(12))
    counts(client)
    client.post("/quiz/weights/w-fp32/reports", data={"words": "odd"})

    page = client.get("/authoring/questions").text

    assert "A learner reports a problem." in page
    assert len(made) == 1
    crowd.all_answer(library.questions.values(), crowd.join(1))
    assert "13" in counts(client).values()
    assert len(made) == 2


def test_what_cannot_be_computed_is_a_fault_and_is_logged(app: FastAPI, clock, caplog):
    class Broken:
        def current(self):
            raise RuntimeError("no course")

    surveyor = StatisticsCache(app.state.engine, Broken(), clock)

    with pytest.raises(RuntimeError, match="no statistics"):
        outcome(surveyor.newest())
    assert "could not be computed" in caplog.text
