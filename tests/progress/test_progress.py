"""GET /progress: what is known by objective, and how that is known."""

import datetime as dt
import re
from collections.abc import Mapping

import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.content.library import Library
from app.database.tables import Attempt, Learner, StudyDay
from tests.conftest import Clock
from tests.progress.test_today import Desk


def test_every_objective_has_a_row(client: TestClient):
    page = client.get("/progress").text

    assert "Say how much memory the weights of a model take" in page
    assert page.count(">not started<") == 2


def test_no_pass_mark_is_printed(client: TestClient):
    page = client.get("/progress").text

    assert "No pass mark is assumed anywhere." in page
    assert "70%" not in page


# --- the figures ----------------------------------------------------------------------


class Past(Desk):
    """A learner whose weeks and sure answers a test writes directly."""

    def day(self, day: str, **sums: float) -> None:
        self.session.add(StudyDay(learner_id=self.id, day=day, **sums))
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


def test_before_anything_is_done_each_figure_says_what_is_missing(client: TestClient):
    page = read(client)

    assert "You have not answered or reviewed anything yet." in page
    for words in (
        "No card came back after a day or more",
        "No card comes back within thirty days",
        "Nothing to compare yet",
        "No time in the last twelve weeks",
    ):
        assert words in page


def test_the_head_counts_weeks_days_answers_and_reviews(rosa: TestClient, past: Past):
    past.day("2026-03-20", answers=600, reviews=1400)
    past.day("2026-06-09", answers=12, reviews=80)
    past.day("2026-06-08")  # a grade that was undone leaves a day without work

    assert (
        "Since March 20: 2 days of study, 612 answers (0 to new questions), 1,480 reviews."
    ) in read(rosa)


def test_recall_of_a_week_stands_beside_what_was_expected(rosa: TestClient, past: Past):
    past.day("2026-06-01", reviews=50, asked=40, recalled=38, expected=36.0)
    past.day("2026-06-08", reviews=9, asked=9, recalled=9, expected=8.0)

    page = read(rosa)

    rows = table(page, "Recall by week")
    assert rows["Jun 1"] == ["40", "38", "95%", "90%"]
    assert rows["Jun 8"] == ["9", "9", "too few", ""]
    assert "In the last four weeks you knew 96% of 49 cards" in page


def test_the_forecast_runs_to_the_exam_and_leaves_out_what_is_put_aside_or_gone(
    rosa: TestClient, past: Past, library: Library
):
    past.settings(exam_day="2026-06-20")
    cards = list(library.cards)
    past.card(cards[0], "2026-06-01")
    past.card(cards[1], "2026-06-12")
    past.card(cards[2], "2026-06-21")
    past.card("left-the-course", "2026-06-12")

    page = read(rosa)

    rows = table(page, "Cards due by day")
    assert "Cards due until the exam" in page
    assert rows["Overdue, counted today"] == ["1"]
    assert (rows["Today"], rows["Friday, June 12"]) == (["1"], ["1"])
    assert rows["Together"] == ["2"]


def test_calibration_shows_share_count_and_range(rosa: TestClient, past: Past):
    past.sure(3, 118, 93)
    past.sure(1, 3, 1)

    page = read(rosa)

    rows = table(page, "Right answers by certainty")
    assert rows["Sure"] == ["80% or more", "93 of 118, 79%", "72% to 84%"]
    assert rows["Guess"] == ["under 67%", "1 of 3", "too few"]
    assert "In 25 answers you were sure and not right." in page


def test_second_answers_do_not_count_to_calibration(rosa: TestClient, past: Past):
    past.sure(3, 10, 10)
    for row in past.session.exec(select(Attempt)):
        row.first = False
    past.settings()

    assert "Nothing to compare yet" in read(rosa)


def test_time_is_added_up_by_week(rosa: TestClient, past: Past):
    past.day("2026-06-08", answers=4, milliseconds=30 * 60_000)
    past.day("2026-06-09", reviews=7, milliseconds=15 * 60_000)

    page = read(rosa)

    assert table(page, "Time by week")["Jun 8"] == ["45", "4", "7"]
    assert "45 min since June 8, for 4 answers and 7 reviews." in page


def test_the_study_log_has_its_numbers_and_a_way_to_hide_it(rosa: TestClient, past: Past):
    past.day("2026-06-08", answers=4, reviews=3)

    page = read(rosa)

    assert table(page, "Answers and reviews by day")["Jun 8"][:2] == ["7", "0"]
    assert '<a href="/settings#calendar">Hide</a>' in page


def test_a_hidden_study_log_is_on_no_page(rosa: TestClient, past: Past):
    past.settings(calendar=False)

    assert "Study log" not in read(rosa)
    assert "Study log" not in rosa.get("/").text


def test_a_day_ends_the_forecast_at_the_exam_only_while_it_lies_ahead(
    rosa: TestClient, past: Past, clock: Clock
):
    past.settings(exam_day="2026-06-10")
    assert "before the exam" in read(rosa)

    clock.now += dt.timedelta(days=1)

    assert "within thirty days" in read(rosa)
