"""GET /progress: what is known by objective, and how that is known."""

import json
import re
from collections.abc import Mapping

import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session, col, select

from app.content.course import Course
from app.content.course_facts import cached_course_facts
from app.database.tables import Attempt, DayListRow, Learner, StudyDayActivity
from tests.conftest import Clock
from tests.progress.test_today import Desk


def test_every_objective_has_a_row_that_says_where_it_stands(rosa: TestClient):
    assert rosa.get("/progress").text.count('class="win">not started') == 2

    rosa.post("/concepts/weights/readings", data={"section": "two-bytes-each"})
    page = rosa.get("/progress").text

    assert page.count('class="win">started') == page.count('class="win">not started') == 1
    assert page.count("Say how much memory the cache of a conversation takes") == 1


def test_an_objective_is_begun_with_its_first_answer_not_the_next_morning(
    rosa: TestClient, session: Session, clock: Clock, course: Course
):
    rosa.post("/concepts/weights/readings", data={"section": "two-bytes-each"})
    assert rosa.get("/progress").text.count('class="win">started') == 1  # makes the list
    read = course.topics["weights"].objectives
    other = next(q for q in course.questions.values() if not set(q.objectives) & set(read))

    Desk(session, clock).answers([other.id], 0.0, other.topic)

    assert rosa.get("/progress").text.count('class="win">started') == 2
    assert rosa.get("/").text.count('class="cell is-begun"') == 2
    assert rosa.get("/course").text.count("is-begun") == 3  # with the one in the key


def test_parts_of_a_row_have_spaces_between_them(rosa: TestClient):
    rosa.post("/concepts/weights/readings", data={"section": "two-bytes-each"})

    page = rosa.get("/progress").text

    assert re.search(r"started\s+· <a href", page)
    assert "started·" not in page


def test_a_row_that_is_not_ready_says_what_is_missing(
    rosa: TestClient, session: Session, clock: Clock, course: Course
):
    def row(objective: str) -> str:
        page = rosa.get("/progress").text
        number = page.partition(f'<span class="no">{objective}</span>')[2]
        return " ".join(re.sub("<[^>]+>", " ", number.partition("</li>")[0]).split())

    objective = course.topics["weights"].objectives[0]
    rosa.post("/concepts/weights/readings", data={"section": "two-bytes-each"})
    assert re.search(r"started · 1 page to read on .* · answer questions on", row(objective))

    rosa.post("/concepts/weights/readings")
    course_facts = cached_course_facts(course)
    asked = [q.id for q in course_facts.questions.values() if objective in q.objectives]
    desk = Desk(session, clock)
    desk.answers(asked[:1], 0.0, "weights")
    assert re.search(r"started, 0 of 1 right · read again .* · answer more on", row(objective))

    desk.answers(asked[1:3], 1.0, "weights")
    assert re.search(r"started, 2 of 3 right · read again", row(objective))
    assert re.search(r"2 of 3.first answers right, about \d+% of the exam", rosa.get("/quiz").text)


def test_the_link_to_the_estimate_leads_into_its_fold(client: TestClient):
    page = client.get("/progress").text

    # A browser opens a fold around its target, but not a fold that is the target.
    assert "<details" not in page.partition('id="how"')[0].rpartition("<summary>")[2]
    assert page.partition('id="how"')[0].rpartition("<")[2].startswith("div")


def test_a_score_without_answers_says_what_it_assumes(
    rosa: TestClient, session: Session, clock: Clock, course: Course
):
    assumption = "Until your answers count, a beginner is assumed."
    rosa.post("/concepts/weights/readings", data={"section": "two-bytes-each"})
    assert all(assumption in rosa.get(page).text for page in ("/", "/progress"))
    question = next(iter(course.questions.values()))
    Desk(session, clock).answers([question.id], 1.0, question.topic)

    clock.tick(days=1)

    assert not any(assumption in rosa.get(page).text for page in ("/", "/progress"))


def test_no_pass_mark_is_printed(client: TestClient):
    page = client.get("/progress").text

    assert "pass mark" not in page
    assert "70%" not in page


# --- the figures ----------------------------------------------------------------------


class Past(Desk):
    """A learner whose weeks and sure answers a test writes directly."""

    def day(self, day: str, **sums: float) -> None:
        self.session.add(StudyDayActivity(learner_id=self.id, day=day, **sums))
        self._save()

    def sure(self, level: int, count: int, right: int) -> None:
        for number in range(count):
            self._count += 1
            self.session.add(
                Attempt(
                    learner_id=self.id,
                    token=f"s{self._count}",
                    item=f"item-{self._count}",
                    revision="r",
                    topic="weights",
                    seed=1,
                    context="quiz",
                    raw="{}",
                    parsed="{}",
                    score=float(number < right),
                    first=True,
                    certainty=level,
                    study_day="2026-06-09",
                    at=1,
                )
            )
        self._save()

    def settings(self, **values: object) -> None:
        learner = self.session.exec(select(Learner)).one()
        for name, value in values.items():
            setattr(learner, name, value)
        self._save()


@pytest.fixture
def past(rosa: TestClient, session: Session, clock: Clock) -> Past:
    rosa.post("/concepts/weights/readings", data={"section": "two-bytes-each"})
    return Past(session, clock)


def read(client: TestClient) -> str:
    return client.get("/progress").text.replace("\u00a0", " ")


def table(page: str, name: str) -> Mapping[str, list[str]]:
    """The rows of the table behind a figure, by their head."""
    found = re.search(rf'aria-label="{name}".*?</table>', page, re.DOTALL)
    assert found, name
    rows = re.findall(r'<th scope="row">(.*?)</th>(.*?)</tr>', found[0], re.DOTALL)
    return {head: re.findall(r"<td[^>]*>(.*?)</td>", cells) for head, cells in rows}


def test_calibration_shows_share_count_and_range(rosa: TestClient, past: Past):
    past.sure(3, 118, 93)
    past.sure(1, 3, 1)

    page = read(rosa)

    rows = table(page, "Right answers by certainty")
    assert rows["Sure"] == ["80% or more", "93 of 118, 79%", "72% to 84%"]
    assert rows["Guess"] == ["25 to 66%", "1 of 3", "too few"]
    assert "25 answers you were sure of were wrong." in page


def test_one_wrong_answer_is_told_as_one(rosa: TestClient, past: Past):
    past.sure(3, 8, 7)

    assert "1 answer you were sure of was wrong." in read(rosa)


def test_second_answers_do_not_count_to_calibration(rosa: TestClient, past: Past):
    past.sure(3, 10, 10)
    for row in past.session.exec(select(Attempt)):
        row.first = False
    past.settings()

    assert "Nothing to compare yet" in read(rosa)


def test_the_study_log_has_its_numbers_and_a_way_to_hide_it(rosa: TestClient, past: Past):
    past.day("2026-06-08", answers=4, reviews=3)

    page = read(rosa)

    # The section that was read on Tuesday counts too.
    assert table(page, "Answers, reviews and sections by day")["Jun 8"][:2] == ["7", "1"]
    assert 'href="/settings#calendar">Hide the log</a>' in page


def test_a_hidden_study_log_is_on_no_page(rosa: TestClient, past: Past):
    past.settings(calendar=False)

    assert "Study log" not in read(rosa)
    assert "Study log" not in rosa.get("/").text


def test_the_score_comes_first_with_its_range_and_how_it_changed(
    rosa: TestClient, past: Past, course: Course, clock: Clock
):
    first = re.search(r"<h1>About (\d+) of (\d+)</h1>", read(rosa))
    assert first
    assert "up " not in read(rosa).partition("</h1>")[2][:200]

    past.session.rollback()
    past.answers(list(course.questions)[:8], 1.0, "weights")
    clock.tick(days=1)
    page = read(rosa)

    now = re.search(r"<h1>About (\d+) of (\d+)</h1>", page)
    assert now
    assert f"up {int(now[1]) - int(first[1])} since Jun 9" in page.replace("\xa0", " ")
    assert f"from {first[1]} on Jun 9 to {now[1]} today" in page.replace("\xa0", " ")
    assert f"<b>{now[1]} of {now[2]}</b>" in rosa.get("/").text


def test_a_score_above_its_objectives_says_that_it_falls_slowly(
    rosa: TestClient, clock: Clock, session: Session, course: Course
):
    rosa.post("/concepts/weights/readings", data={"section": "two-bytes-each"})
    desk = Desk(session, clock)
    questions, said = list(course.questions), []
    for answered, score in ((questions[:4], 1.0), (questions[4:], 0.0)):
        desk.answers(answered, score, "weights")
        clock.tick(days=1)
        page = " ".join(rosa.get("/progress").text.split())
        session.rollback()
        row = session.exec(select(DayListRow).order_by(col(DayListRow.day).desc())).first()
        estimate = json.loads(row.estimate)
        said.append("The score above falls there a little each day" in page)
        assert said[-1] == (round(estimate["shown"]) > round(estimate["mean"]))
    assert said == [False, True]
