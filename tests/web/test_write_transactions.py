"""What is costly is done before the write transaction or after it, not within."""

import contextlib
import datetime as dt
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.clock import to_milliseconds
from app.database.engine import WRITE_OPTIONS
from app.database.tables import Learner, LearnerSession, Review, Sitting
from app.exams.store import load_questions_seen
from app.quiz.store import load_past_attempts_by_question
from app.study_plan.loader import load_cards_on_day_list
from app.web import render
from tests.conftest import Clock
from tests.exams.sitting import START, begin, finish
from tests.import_export.package import Made, package
from tests.import_export.test_cards_in import DAY, NOON, bring
from tests.import_export.test_cards_out import review
from tests.turns import Turns, count_open

CARD = "/flashcards/w-c-bf16"


@pytest.fixture
def turns(app: FastAPI) -> Turns:
    return count_open(app)


@pytest.fixture
def rendered(turns: Turns, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Each template that is rendered, and how many write transactions were open."""
    seen, whole = [], render._render_template

    def rendering(request: Request, template: str, context: dict[str, Any]) -> str:
        seen.append((template, turns.open))
        return whole(request, template, context)

    monkeypatch.setattr(render, "_render_template", rendering)
    return seen


def watch(
    monkeypatch: pytest.MonkeyPatch, turns: Turns, target: str, work: Callable[..., Any]
) -> list[int]:
    """How many write transactions were open at each call of a function."""
    seen: list[int] = []

    def called(*given: Any, **named: Any) -> Any:
        seen.append(turns.open)
        return work(*given, **named)

    monkeypatch.setattr(target, called)
    return seen


@pytest.mark.parametrize(
    ("address", "sent", "template"),
    [
        ("/flashcards/own", {"data": {"front": ""}}, "flashcards/own.html"),
        (f"{START}/sittings", {"data": {"factor": "7"}}, "exams/start.html"),
        ("/settings/cards", {"files": {"file": ("a", b"x")}}, "import_export/cards.html"),
        ("/settings/erasure", {"data": {"word": "no"}}, "accounts/erasure.html"),
    ],
)
def test_a_form_that_is_refused_is_rendered_while_nobody_waits(
    rosa: TestClient, rendered: list[tuple[str, int]], address, sent, template
) -> None:
    answer = rosa.post(address, **sent)

    assert answer.status_code == 422
    assert rendered == [(template, 0)]


@contextlib.contextmanager
def as_htmx(client: TestClient) -> Iterator[None]:
    client.headers["HX-Request"] = "true"
    yield
    del client.headers["HX-Request"]


def test_the_next_card_is_laid_out_when_what_was_done_is_on_disk(
    rosa: TestClient,
    turns: Turns,
    rendered: list[tuple[str, int]],
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It waits for the list of the day, which takes long to make."""
    exam = (clock.now + dt.timedelta(days=30)).date().isoformat()
    rosa.post("/plan", data={"exam_day": exam, "minutes_a_day": "30"})
    planned = watch(
        monkeypatch,
        turns,
        "app.flashcards.review_page.load_cards_on_day_list",
        load_cards_on_day_list,
    )
    rendered.clear()
    with as_htmx(rosa):
        grade = {"rating": "3", "token": "w-c-bf16.0"}
        rosa.post(f"{CARD}/reviews", data=grade)
        acted = rosa.post(f"{CARD}/acts", data={"act": "bury", "token": "t"})
        number = re.search(r'name="review" value="(\d+)"', acted.text)
        assert number
        rosa.post("/flashcards/undo", data={"review": number[1]})
        rosa.post(f"{CARD}/suspension", data={"aside": "yes"})

    assert rendered == [("flashcards/_review.html", 0)] * 4
    assert planned
    assert set(planned) == {0}


def test_what_is_set_after_an_undo_is_in_the_plan_of_the_next_page(
    rosa: TestClient, clock: Clock
) -> None:
    exam = (clock.now + dt.timedelta(days=30)).date().isoformat()
    rosa.post("/plan", data={"exam_day": exam, "minutes_a_day": "30"})
    with as_htmx(rosa):
        shown = rosa.get("/flashcards").text
        first = re.search(r"/flashcards/([^/\"]+)/answer", shown)
        assert first
        act = {"act": "bury", "token": "t"}
        after = rosa.post(f"/flashcards/{first[1]}/acts", data=act).text
        number = re.search(r'name="review" value="(\d+)"', after)
        assert number
        again = rosa.post("/flashcards/undo", data={"review": number[1]}).text

    assert f"/flashcards/{first[1]}/answer" not in after
    assert f"/flashcards/{first[1]}/answer" in again


def test_nothing_is_written_for_a_topic_that_there_is_not(
    rosa: TestClient, session: Session
) -> None:
    for address, body in (
        (f"{CARD}/acts", {"act": "bury", "token": "t"}),
        (f"{CARD}/suspension", {"aside": "yes"}),
        ("/flashcards/undo", {"review": "1"}),
    ):
        answer = rosa.post(address, data={**body, "topic": "none"})
        assert answer.status_code == 404

    assert session.exec(select(Review)).all() == []


def test_the_questions_of_a_run_are_chosen_before(
    rosa: TestClient, turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = watch(
        monkeypatch,
        turns,
        "app.quiz.store.load_past_attempts_by_question",
        load_past_attempts_by_question,
    )

    rosa.post("/quiz/runs", data={"pick": "mixed", "count": "3"})

    assert looked == [0]
    assert turns.begun == 1


def test_a_paper_is_drawn_before_its_clock_starts(
    rosa: TestClient, turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = watch(monkeypatch, turns, "app.exams.store.load_questions_seen", load_questions_seen)

    begin(rosa)

    assert looked == [0]
    assert turns.begun == 1


def test_a_paper_that_another_tab_began_meanwhile_is_the_one_to_go_on_with(
    app: FastAPI,
    rosa: TestClient,
    session: Session,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rosa.post("/concepts/weights/readings")
    learner = session.exec(select(Learner)).one().id
    now = to_milliseconds(clock.now)
    session.rollback()

    def while_drawing(*given: Any) -> Any:
        with Session(app.state.engine) as db:
            db.connection(execution_options=WRITE_OPTIONS)
            mine = {"learner_id": learner, "exam": "short", "token": "of another tab"}
            times = {"started_at": now, "deadline_at": now + 60_000}
            db.add(Sitting(**mine, **times, seed=1, paper="[]"))
            db.commit()
        return load_questions_seen(*given)

    monkeypatch.setattr("app.exams.store.load_questions_seen", while_drawing)
    monkeypatch.setattr("app.database.engine.BUSY_TIMEOUT_MILLISECONDS", 100)

    sitting = begin(rosa)

    (row,) = session.exec(select(Sitting)).all()
    assert row.token == "of another tab"  # noqa: S105 - of a form
    assert sitting == f"/exams/sittings/{row.id}"


def test_an_exam_that_ran_out_is_closed_and_a_new_one_begins(
    rosa: TestClient, session: Session, clock: Clock
) -> None:
    first = begin(rosa)
    clock.tick(hours=2)

    second = begin(rosa)

    assert second != first
    closed = [row.closed_by for row in session.exec(select(Sitting))]
    assert closed == ["time", ""]
    finish(rosa, second)


def graded(cards: int, grades: int) -> bytes:
    """A package of cards with so many grades each."""
    return package(
        *(
            Made(
                f"g{card}",
                (f"F{card}", "B"),
                log=tuple((0, NOON - (grades - n) * DAY + card, 3, 0, 4000) for n in range(grades)),
            )
            for card in range(cards)
        )
    )


def test_cards_with_long_logs_are_removed_few_at_a_time(
    rosa: TestClient, session: Session, turns: Turns
) -> None:
    bring(rosa, graded(cards=6, grades=200))
    before = turns.begun

    deck = {"what": "deck", "deck": "Networks::RDMA"}
    assert rosa.post("/settings/cards/removal", data=deck).status_code == 303

    # Two cards at a time, and one more for what is left of them.
    assert turns.begun - before == 4
    assert session.exec(select(Review)).all() == []


def test_much_is_erased_part_by_part_and_little_at_once(
    rosa: TestClient, milo: TestClient, session: Session, turns: Turns
) -> None:
    bring(rosa, graded(cards=4, grades=400))
    review(milo, "w-c-bf16", 3)
    before = turns.begun

    answer = rosa.post("/settings/erasure", data={"word": "erase"})

    assert answer.status_code == 303
    assert 4 <= turns.begun - before <= 8
    assert len(session.exec(select(Review)).all()) == 1
    assert len(session.exec(select(LearnerSession)).all()) == 1
    before = turns.begun
    milo.post("/settings/erasure", data={"word": "erase"})
    assert turns.begun - before <= 3
    session.rollback()
    assert session.exec(select(Review)).all() == []
