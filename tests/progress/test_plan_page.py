"""GET /plan: the days until the exam, and what they bring."""

import datetime as dt
import re
import xml.etree.ElementTree as ET

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import event
from sqlmodel import Session, select

from app.content.library import Library
from app.database.tables import CardStateRow, Learner
from app.progress.charts import plan_course_sentence, plan_figure
from app.spaced_repetition.review_pace import USUAL
from app.study_plan.card_plan import CardPlanInputs, CardsLeft, StartedCard, outline_plan
from app.study_plan.forecast import DeckCounts, compare_scenarios, plan_inputs, plan_summary
from tests.cards.known import known_card
from tests.databases import ABOUT_SQLITE
from tests.exams.sitting import begin, finish

TODAY = dt.date(2026, 6, 9)
DAY = TODAY.toordinal()
LEFT = CardsLeft(due=20, fresh=3)


class Student:
    """A learner whose exam day and memory a test writes directly."""

    def __init__(self, client: TestClient, session: Session) -> None:
        client.post("/concepts/weights/readings", data={"section": "two-bytes-each"})
        self.client = client
        self.session = session
        self.row = session.exec(select(Learner)).one()

    def aims(self, days: int, minutes: int = 30) -> None:
        self.row.exam_day = (TODAY + dt.timedelta(days=days)).isoformat()
        self.row.minutes_a_day = minutes
        self._save()

    def knows(self, card: str, seen: int = 9, *, suspended: bool = False) -> None:
        last = TODAY - dt.timedelta(days=seen)
        due = last + dt.timedelta(days=9)
        self.session.add(known_card(self.row.id or 0, card, last, due, suspended=suspended))
        self._save()

    def page(self, address: str = "/plan") -> str:
        html = self.client.get(address).text.replace("\xa0", " ")
        return re.sub(r"\s+", " ", html)

    def _save(self) -> None:
        self.row.changes += 1
        self.session.commit()


@pytest.fixture
def student(rosa: TestClient, session: Session) -> Student:
    return Student(rosa, session)


def deck(count: int) -> tuple[StartedCard, ...]:
    return tuple(
        StartedCard(f"c{n:03}", 3.0 + n % 30, 5.0, DAY - 1 - n % 20, DAY + n % 9)
        for n in range(count)
    )


def test_without_an_exam_day_it_invites_to_set_one(client: TestClient) -> None:
    html = client.get("/plan").text

    assert "No exam day is set" in html
    assert 'href="/settings">Set an exam day' in html
    assert 'role="img"' not in html


def test_no_more_is_promised_than_the_plan_may_keep(client: TestClient) -> None:
    html = " ".join(client.get("/plan").text.split())

    assert "and every card comes back before the exam" not in html
    assert "If your minutes are enough for every card, each comes back once more" in html
    assert "the plan says how many cards will not be started" in html


def test_an_exam_day_that_is_over_plans_nothing(student: Student) -> None:
    student.aims(-3)

    assert "Your exam day was Saturday, June 6" in student.page()
    assert "Set an exam day" in student.page()


def test_the_days_stand_in_a_drawing_and_in_a_table(student: Student, library: Library) -> None:
    student.knows(next(iter(library.cards)))
    student.aims(10)

    page = student.page()

    assert "10 days to your exam on Friday, June 19" in page
    assert "About half of your 30 minutes a day is for cards" in page
    assert f"1 of {len(library.cards)} cards are started" in page
    assert 'aria-label="Minutes of cards per day until the exam: At most' in page
    assert page.count('<th scope="row">') >= 10 + 3
    assert "every card you started once more" in page


def test_the_ways_are_compared_in_sentences(student: Student, library: Library) -> None:
    student.knows(next(iter(library.cards)))
    student.aims(10)

    page = student.page()

    assert re.search(r"About \d+ of \d+ cards are known", page)
    assert "Without planning for the exam day it would be" in page
    assert "If you skip the next 3 days, it would be" in page
    assert "planned, 3 days skipped" in page


def test_what_does_not_fit_is_said_with_what_to_do_about_it(student: Student) -> None:
    student.aims(2, minutes=5)

    page = " ".join(re.sub("<[^>]+>", " ", student.page()).split())

    said = r"\d+ pages? \(\d+ minutes of reading\) do(es)? not fit before your exam\. "
    advice = r"Study about \d+ minutes more a day from tomorrow on \(half of them go to"
    assert re.search(said + advice, page)
    assert "Pages that do not fit" in page
    student.aims(30, minutes=60)
    assert "not fit before" not in student.page()


def test_the_day_before_the_exam_nothing_can_be_skipped(student: Student) -> None:
    student.aims(1)

    page = student.page()

    assert "1 day to your exam" in page
    assert "Skipping" not in page


def test_on_the_day_of_the_exam_nothing_is_run(student: Student) -> None:
    student.aims(0)

    assert "Your exam is today" in student.page()
    assert "are known" not in student.page()


def test_far_ahead_nothing_is_drawn_yet(student: Student) -> None:
    student.aims(400)

    assert "The days are shown from 180 days before the exam" in student.page()


def test_a_card_put_aside_or_gone_is_not_counted(student: Student, library: Library) -> None:
    first, second = list(library.cards)[:2]
    student.knows(first)
    student.knows(second, suspended=True)
    student.knows("left-the-course")
    student.aims(10)

    assert f"1 of {len(library.cards) - 1} cards are started" in student.page()


def test_a_card_added_and_never_graded_is_one_of_all_and_not_started(
    student: Student, library: Library
) -> None:
    student.knows(next(iter(library.cards)))
    question = next(iter(library.questions))
    student.session.add(
        CardStateRow(
            learner_id=student.row.id or 0,
            card=f"q:{question}",
            note=f"q:{question}",
            topic="weights",
            state="new",
            due_day=(TODAY - dt.timedelta(days=3)).isoformat(),
            due_at=0,
            first_day="",
            last_day="",
            reviews=0,
            turns=0,
        )
    )
    student.aims(10)

    page, whole = student.page(), len(library.cards) + 1
    assert f"1 of {whole} cards are started." in page
    assert f"of {whole} cards are known" in page
    fresh = sum(int(n) for n in re.findall(r"(\d+) new\b(?! card)", page))
    assert f"{fresh} new cards" in page
    assert f'<td class="n">{1 + fresh}</td>' in page  # started, as planned


@ABOUT_SQLITE
def test_the_page_asks_the_database_few_things(student: Student, library: Library, app) -> None:
    student.knows(next(iter(library.cards)))
    student.aims(30)
    asked: list[str] = []
    event.listen(
        app.state.engine,
        "before_cursor_execute",
        lambda _c, _k, statement, *_: asked.append(statement),
    )

    student.page()
    student.page()

    # The learner, all cards, what the desk asks for its number of today's cards, and
    # for pages, questions and mocks what Today asks too, a running exam among it, the
    # pace and the calendar.
    assert len([a for a in asked if a.startswith("SELECT")]) <= 18


def test_today_says_the_plan_in_a_line_and_leads_to_it(student: Student) -> None:
    assert 'href="/plan"' not in student.page("/")

    student.aims(10)

    page = student.page("/")
    assert "Until Friday, June 19: about" in page
    assert '<a href="/plan">The plan</a>' in page


def test_today_counts_the_last_looks_though_no_card_is_due(
    student: Student, library: Library
) -> None:
    for card in list(library.cards)[:2]:
        student.knows(card, seen=2)
    assert "Review" not in student.page("/")

    student.aims(1)

    assert "2 to see once more" in student.page("/")


def test_the_mock_exam_of_the_day_stands_on_today_until_it_is_sat(
    student: Student,
) -> None:
    student.aims(3)
    assert "planned for today" not in student.page("/")
    student.aims(2)
    today = student.page("/")

    assert "Planned for today" in today
    steps = today.partition(">Today\u2019s plan")[2].partition("</ol>")[0]
    assert 'href="/exams/' in steps
    row = student.page().partition('aria-current="date"')[2].partition("</tr>")[0]
    assert 'href="/exams"' in row

    finish(student.client, begin(student.client))
    assert "Planned for today" not in student.page("/")


def test_what_was_seen_in_the_last_days_is_not_counted_again(
    student: Student, library: Library
) -> None:
    seen, *rest = (1, 2, 9), *library.cards
    for days, card in zip(seen, rest, strict=False):
        student.knows(card, seen=days)
    for card in rest[3:]:
        student.knows(card, suspended=True)
    student.aims(1, minutes=5)

    assert "3 to see once more" in student.page("/")

    student.aims(1, minutes=1)  # half a minute for cards: two days for three cards

    assert "Review 2 cards" in student.page("/")


def test_progress_leads_to_the_plan(student: Student, library: Library) -> None:
    student.knows(next(iter(library.cards)))
    student.aims(10)

    assert 'href="/plan"' in student.page("/progress")


def test_a_day_off_is_empty_on_every_page(student: Student, library: Library) -> None:
    for card in list(library.cards)[:3]:
        student.knows(card)
    student.aims(20)
    assert ">Study 4 cards<" in student.page("/")

    student.row.days_off = f"{TODAY.weekday()}"
    student.aims(20)

    page = student.page("/")
    assert "Today is one of your days off" in page
    assert ">Review " not in page
    assert "More come tomorrow" in student.page("/flashcards")
    rows = re.findall(r"<tr[^>]*> ?<th scope=.row.>(.*?)</tr>", student.page())
    off = [row for row in rows if row.startswith("Tuesday")]
    assert off
    assert not any("min" in row or "Cards:" in row for row in off)


def test_the_last_week_may_take_twice_the_minutes(student: Student) -> None:
    student.row.double_last_week = True
    student.aims(7, minutes=30)
    assert "more than the" not in student.page("/")
    page = student.page()

    assert "the last week may take twice as long" in page
    assert "over your" not in page


# --- the rules behind it ------------------------------------------------------------


def test_what_was_done_today_takes_its_time() -> None:
    held = DeckCounts(deck(30), unseen=10, answered=12, fresh=2)

    asked = plan_inputs(held, TODAY + dt.timedelta(days=9), 900.0, TODAY, 0.9, USUAL)

    assert asked.spent == 10 * 10 + 2 * 60
    assert asked.left == 9


def test_the_plan_costs_no_more_than_it_says_and_skipping_is_told() -> None:
    asked = CardPlanInputs(DAY, DAY + 20, 600)
    ahead = compare_scenarios(DeckCounts(deck(60), unseen=60), asked, LEFT)

    assert ahead is not None
    assert ahead.without is not None
    assert ahead.plan.known > ahead.plain.known
    assert ahead.without.known <= ahead.plan.known
    assert ahead.without.mean > ahead.plan.mean
    assert "fewer" in ahead.compared
    assert "more a day after that" in ahead.compared


def test_the_figure_stacks_new_cards_on_those_due() -> None:
    asked = CardPlanInputs(DAY, DAY + 20, 600)
    ahead = compare_scenarios(DeckCounts(deck(60), unseen=60), asked, LEFT)
    assert ahead is not None

    figure = plan_figure(ahead.outlook, 600, "about 4 new cards a day")

    assert len(figure.days) == 20
    rects = list(ET.fromstring(str(figure.svg)).iter("rect"))  # noqa: S314 - our own
    looks = [rect.attrib["class"] for rect in rects]
    assert looks[:2] == ["mark edge", "none edge"]
    assert looks[-1] == "ink"
    assert all(0 <= float(rect.attrib["y"]) <= 124 for rect in rects)
    assert ">Today</text>" in figure.svg
    assert "new cards a day until" in figure.course.replace("\xa0", " ")


def test_nothing_left_to_ask_is_said() -> None:
    fresh = (StartedCard("c", 90.0, 5.0, DAY, DAY + 80),)
    ahead = compare_scenarios(
        DeckCounts(fresh, unseen=0), CardPlanInputs(DAY, DAY + 1, 300), CardsLeft()
    )
    assert ahead is not None

    assert plan_figure(ahead.outlook, 300, "").sentence == "No card is left to ask."


def test_cards_that_will_not_be_begun_are_named() -> None:
    ahead = compare_scenarios(DeckCounts((), unseen=300), CardPlanInputs(DAY, DAY + 10, 300), LEFT)
    assert ahead is not None

    said = plan_course_sentence(ahead.outlook, "").replace("\xa0", " ")

    assert re.search(r"\d+ cards will not be started", said)
    assert ", also the cards you started that gain most from another review." in said


def test_the_plan_in_short(subtests: pytest.Subtests) -> None:
    for unseen, days, left, words in [
        (100, 30, 9, "about 4 new cards a day until"),
        (0, 30, 9, "what is due, and from"),
        (50, 1, 60, "the cards you started once more, 60 of them today"),
        (50, 1, 0, "nothing more to review today"),
        (900, 30, 9, "about 15 new cards a day."),
    ]:
        with subtests.test(unseen=unseen, days=days, left=left):
            asked = CardPlanInputs(DAY, DAY + days, 900)

            said = plan_summary(outline_plan(100, unseen, asked), asked, CardsLeft(due=left))

            assert words in said.replace("\xa0", " ")
