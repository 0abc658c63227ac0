"""GET /: what is due, where you were, what is weakest."""

import datetime as dt
import re

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import String, cast, delete, event, func, literal, update
from sqlmodel import Session, select

from app.clock import to_milliseconds
from app.content.library import Library
from app.database.tables import Attempt, Learner
from app.study_plan.loader import TodaySoFar
from app.web.formatting import format_duration
from tests.cards.known import known_card
from tests.cards.rebuilding import rebuild_days
from tests.conftest import Clock


class Desk:
    """A learner whose records a test writes directly."""

    def __init__(self, session: Session, clock: Clock) -> None:
        self.session = session
        self.clock = clock
        self.id = session.exec(select(Learner.id)).one() or 0
        self._count = 0

    def answers(self, questions: list[str], score: float, topic: str) -> None:
        for item in questions:
            self._count += 1
            self.session.add(
                Attempt(
                    learner_id=self.id,
                    token=f"t{self._count}",
                    item=item,
                    revision="r",
                    topic=topic,
                    seed=1,
                    context="quiz",
                    raw="{}",
                    parsed="{}",
                    score=score,
                    first=True,
                    study_day="2026-06-09",
                    at=to_milliseconds(self.clock.now),
                )
            )
        self.session.flush()
        rebuild_days(self.session, self.id)
        self._save()

    def card(self, card: str, due: str, state: str = "review", **wait: float) -> None:
        at = self.clock.now + dt.timedelta(**wait)
        last, day = dt.date(2026, 5, 20), dt.date.fromisoformat(due)
        kept = {"note": card.removesuffix("~r"), "state": state}
        self.session.add(known_card(self.id, card, last, day, due_at=to_milliseconds(at), **kept))
        self._save()

    def _save(self) -> None:
        learner = self.session.get(Learner, self.id)
        assert learner
        learner.changes += 1
        self.session.commit()


@pytest.fixture
def desk(rosa: TestClient, session: Session, clock: Clock) -> Desk:
    rosa.post("/concepts/weights/readings", data={"section": "two-bytes-each"})
    return Desk(session, clock)


def test_the_first_visit_says_where_to_start(client: TestClient):
    page = client.get("/").text

    assert "Start here" in page
    assert "Headroom prepares you for Capacity Basics (CB-1)" in " ".join(page.split())
    assert "When is your exam?" in page
    assert 'name="exam_day"' in page
    assert 'href="/concepts/weights"' in page


def test_an_exam_day_set_before_all_else_leads_to_its_plan(rosa: TestClient):
    form = {"exam_day": "2026-07-03", "minutes_a_day": "30", "retention": "90"}
    rosa.post("/settings", data=form)

    page = rosa.get("/").text

    assert "Start here" in page
    assert "Your exam is on Friday, July\u00a03" in page
    assert 'href="/plan"' in page


def test_the_first_visit_leaves_no_row(client: TestClient, session: Session):
    client.get("/")

    assert session.exec(select(Learner)).all() == []


def test_a_practice_run_that_was_left_is_what_today_and_practice_go_on_with(
    rosa: TestClient, desk: Desk, library: Library
):
    desk.answers(list(library.topics["weights"].questions)[:2], 1.0, "weights")
    sent = rosa.post("/quiz/runs", data={"pick": "mixed", "count": "3", "token": "x"})
    run = sent.headers["location"]

    today, practice = words_of(rosa), rosa.get("/quiz").text
    plan = rosa.post("/plan", data={"exam_day": "2026-06-20", "minutes_a_day": "60"})
    row = rosa.get("/plan").text.partition('aria-current="date"')[2]

    assert "Practice: 3 questions left" in today
    assert "You stopped after 0 of 3" in today
    assert f'href="{run}"' in rosa.get("/").text
    assert f'href="{run}"' in practice
    assert plan.status_code == 303
    more = re.search(r">(\d+) questions: ", today)
    assert more
    assert f">{3 + int(more[1])}</td>" in row.partition("</tr>")[0]


@pytest.mark.usefixtures("desk")
def test_the_page_left_open_is_offered_at_its_next_section(rosa: TestClient):
    page = rosa.get("/").text

    assert "Tuesday, June" in page
    assert 'href="/concepts/weights#try-it"' in page
    assert "Continue at section 2, Try it" in page


def test_cards_due_today_are_the_next_thing(rosa: TestClient, desk: Desk):
    desk.card("w-c-bf16", "2026-06-08")

    page = rosa.get("/").text

    assert "1\N{NO-BREAK SPACE}review" in page
    assert page.index("1\N{NO-BREAK SPACE}review") < page.index("Continue at section")


def test_a_card_in_its_steps_is_due_at_its_minute(
    rosa: TestClient, desk: Desk, clock: Clock, library: Library
):
    for card in library.cards:
        desk.card(card, "2026-06-09", "learning", minutes=10)
    assert "Review" not in rosa.get("/").text.split("If you took it")[0]

    clock.tick(minutes=11)

    assert f"Review {len(library.cards)} cards" in rosa.get("/").text


def test_the_week_counts_what_comes_back(rosa: TestClient, desk: Desk):
    desk.card("w-c-bf16", "2026-06-01")
    desk.card("k-c-grows", "2026-06-12")

    page = rosa.get("/").text

    for day in ("Today", "Friday, June\u00a012"):
        assert re.search(rf"{day}</th><td[^>]*>1</td>", page), day


@pytest.mark.usefixtures("desk")
def test_the_exam_day_is_counted_down(rosa: TestClient):
    form = {"exam_day": "2026-07-03", "minutes_a_day": "30", "retention": "90"}
    rosa.post("/settings", data=form)

    assert "24\u00a0days to your exam" in rosa.get("/").text


@pytest.mark.usefixtures("desk")
def test_a_target_is_drawn_only_when_it_is_the_learners_own(rosa: TestClient):
    assert "your target" not in rosa.get("/").text

    form = {"target": "75", "minutes_a_day": "30", "retention": "90"}
    rosa.post("/settings", data=form)

    assert "your target, 75%" in rosa.get("/").text


def test_the_map_fills_once_five_questions_were_answered(
    rosa: TestClient, desk: Desk, library: Library
):
    questions = list(library.topics["weights"].questions)
    desk.answers(questions[:4], 1.0, "weights")
    assert "1.1 few answers" in rosa.get("/").text

    desk.answers(questions[4:5], 0.0, "weights")

    assert re.search(r"1\.1 \d\d%", rosa.get("/").text)


def test_an_estimate_appears_with_its_range_after_fifteen_answers(
    rosa: TestClient, desk: Desk, library: Library
):
    questions = list(library.questions)
    assert len(questions) >= 15
    for slug, topic in library.topics.items():
        desk.answers(list(topic.questions), 1.0, slug)

    page = rosa.get("/").text

    assert "No estimate yet" not in page
    assert "most likely" in page


def test_less_than_a_minute_of_work_is_said_so(
    rosa: TestClient, desk: Desk, library: Library, session: Session
):
    assert "of cards and questions" not in rosa.get("/").text

    desk.answers(list(library.questions)[:1], 1.0, "weights")
    session.execute(update(Attempt).values(milliseconds=20_000))
    desk.answers([], 1.0, "weights")

    assert "Done today: less than a minute of cards" in rosa.get("/").text


def test_what_was_read_today_takes_its_minutes(rosa: TestClient, clock: Clock, library: Library):
    rosa.post("/settings", data={"minutes_a_day": "5", "retention": "90"})
    assert "5 minutes of today are used" not in words_of(rosa)

    for slug, topic in library.topics.items():
        for section in [s.anchor for s in topic.sections if s.anchor]:
            rosa.post(f"/concepts/{slug}/readings", data={"section": section})

    read = sum(s.minutes for t in library.topics.values() for s in t.sections)
    assert read > 5
    assert f"Done today: {round(read)} min of reading" in words_of(rosa)
    assert "although your 5 minutes of today are used" in words_of(rosa)
    clock.tick(days=1)
    assert "Done today" not in words_of(rosa)


def words_of(browser: TestClient) -> str:
    return " ".join(browser.get("/").text.replace("\xa0", " ").split())


def test_the_log_counts_days_with_work(rosa: TestClient, desk: Desk, library: Library):
    assert "0 of 1\u00a0day since" in rosa.get("/").text

    desk.answers(list(library.questions)[:3], 1.0, "weights")

    assert "1 of 1\u00a0day since" in rosa.get("/").text


def test_today_asks_the_database_eleven_things_and_once_a_day_how_fast_one_is(
    app, rosa: TestClient, desk: Desk, library: Library
):
    asked: list[str] = []
    event.listen(app.state.engine, "before_cursor_execute", lambda *a: asked.append(a[2]))

    rosa.get("/")

    reads = [a for a in asked if a.startswith("SELECT")]
    paces = [a for a in reads if "review.milliseconds" in a or "attempt.milliseconds" in a]
    # Two of them are those of the desk, whose number of cards is said here as well.
    assert len(reads) - len(paces) == 11
    assert len(paces) == 2  # of cards, and of questions and pages
    desk.answers(list(library.questions)[:1], 1.0, "weights")
    asked.clear()
    rosa.get("/")
    assert not [a for a in asked if "review.milliseconds" in a or "attempt.milliseconds" in a]
    assert 1 <= len([a for a in asked if a.startswith("SELECT")]) <= 11


def test_of_the_answers_only_new_ones_are_read(
    app, rosa: TestClient, desk: Desk, library: Library, session: Session
):
    questions = list(library.topics["weights"].questions)
    desk.answers(questions[:3], 1.0, "weights")
    rosa.get("/")
    newest = session.exec(select(func.max(Attempt.id))).one()
    since: list[object] = []

    def note(_connection, _cursor, statement, values, *_rest) -> None:
        if "attempt.hints" in statement:
            by_name = isinstance(values, dict)
            since.append(values["since"] if by_name else values[-1])

    event.listen(app.state.engine, "before_cursor_execute", note)

    rosa.get("/progress")
    desk.answers(questions[3:4], 1.0, "weights")
    assert "1.1 few answers" in rosa.get("/").text

    assert since == [newest, newest]


def test_answers_to_another_log_of_the_same_length_are_not_mistaken(
    rosa: TestClient, desk: Desk, library: Library, session: Session
):
    questions = list(library.topics["weights"].questions)
    desk.answers(questions[:5], 1.0, "weights")
    rosa.get("/")

    session.execute(
        update(Attempt).values(
            item=questions[5], token=literal("another ") + cast(Attempt.id, String)
        )
    )
    desk.answers([], 1.0, "weights")

    assert "1.1 few answers" in rosa.get("/").text


def test_cards_are_added_up_again_only_after_reviews(
    app, rosa: TestClient, session: Session, desk: Desk
):
    asked: list[str] = []
    event.listen(app.state.engine, "before_cursor_execute", lambda *a: asked.append(a[2]))

    def sums() -> int:
        """How often cards were added up for one look that is made anew."""
        asked.clear()
        session.rollback()
        desk.answers([], 1.0, "weights")
        rosa.get("/")
        return sum("nullif(memory.stability" in statement for statement in asked)

    page = rosa.get("/flashcards?show=1").text
    card = re.search(r'action="(/flashcards/[^"]+/reviews)"', page)
    token = re.search(r'name="token" value="([^"]+)"', page)
    assert card
    assert token
    rosa.post(card[1], data={"rating": "3", "token": token[1]})

    assert sums() == 1
    assert sums() == 0


def test_whoever_erases_everything_begins_with_nothing(
    rosa: TestClient, desk: Desk, library: Library, session: Session, clock: Clock
):
    questions = list(library.topics["weights"].questions)
    desk.answers(questions[:5], 1.0, "weights")
    assert re.search(r"1\.1 \d\d%", rosa.get("/").text)

    session.execute(delete(Attempt))
    session.commit()
    clock.tick(minutes=5)
    Desk(session, clock).answers(questions[:5], 0.0, "weights")

    said = re.search(r"1\.1 (\d+)%", rosa.get("/").text)
    assert said
    assert int(said[1]) < 25


def test_a_stranger_costs_one_question(app, client: TestClient):
    asked: list[str] = []
    event.listen(app.state.engine, "before_cursor_execute", lambda *a: asked.append(a[2]))

    client.get("/")

    assert len([a for a in asked if a.startswith("SELECT")]) == 1


def test_a_question_takes_as_long_on_today_as_in_the_plan(
    rosa: TestClient, desk: Desk, library: Library, clock: Clock, session: Session
):
    desk.answers(list(library.questions)[:6], 0.0, "weights")
    session.execute(update(Attempt).values(milliseconds=200_000))
    session.commit()
    rosa.post("/settings", data={"exam_day": "2026-06-29", "minutes_a_day": "30"})
    clock.tick(days=1)

    today, plan = rosa.get("/").text, rosa.get("/plan").text

    told = re.search(r"not answered\s+right since · about (\d+)", today)
    question = re.search(r"(\d+) a question", plan)
    assert told
    assert question
    seconds = int(question[1])
    assert seconds > 72
    assert int(told[1]) == round(6 * seconds / 60)


@pytest.mark.parametrize(
    ("answered", "read", "shown"),
    [(3.4, 3.4, 6), (3.6, 2.6, 7), (0.9, 0.9, 0), (0.0, 5.2, 5)],
)
def test_what_was_spent_is_the_sum_of_what_is_shown(answered: float, read: float, shown: int):
    said = [format_duration(n) for n in (answered, read) if n]
    minutes = [int(n) for words in said for n in re.findall(r"(\d+).min", words)]

    assert TodaySoFar(answered=answered, read=read).shown == shown == sum(minutes)


def test_of_a_page_begun_it_is_said_how_much_was_read(rosa: TestClient):
    rosa.post("/concepts/weights/readings", data={"section": "two-bytes-each"})

    course = re.search(r"(\d+ of \d+ sections) read", rosa.get("/course").text)
    assert course
    assert f"{course[1]} read, the last today" in words_of(rosa)
