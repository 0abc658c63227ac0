"""A rich past in the shipped course: a number that stands on two pages is one."""

import dataclasses
import datetime as dt
import html
import re
from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from itsdangerous import Signer
from sqlmodel import Session, select

from app.content.library import Library, LiveLibrary
from app.database.tables import Attempt, Learner
from app.web.visitor import COOKIE
from tests.conftest import SECRET, Clock, visit
from tests.progress.past import Past, live

RICH = Past(cards=110, reviews=500, answers=150, days=24)
KEY = "of a learner who did much"
HEAD = ["Day", "Reviews"]


@pytest.fixture(scope="module")
def live_library(live_shipped: LiveLibrary) -> LiveLibrary:
    return live_shipped


@pytest.fixture(scope="module")
def library(shipped: Library) -> Library:
    return shipped


class Pages:
    """What each page says to the learner, without tags."""

    def __init__(self, client: TestClient) -> None:
        self.client = client

    def page(self, address: str) -> str:
        answer = self.client.get(address)
        assert answer.status_code == 200, address
        return answer.text.replace("\xa0", " ")

    def words(self, address: str) -> str:
        main = self.page(address).partition("<main")[2].partition("</main>")[0]
        return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", main)))

    def rows(self, address: str) -> list[list[str]]:
        """The cells of every table row."""
        found = re.findall(r"<tr[^>]*>(.*?)</tr>", self.page(address), re.DOTALL)
        return [
            [
                re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", cell)).strip()
                for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)
            ]
            for row in found
        ]

    def today(self, address: str) -> list[int]:
        """The numbers of the table row of today."""
        row = next(r for r in self.rows(address) if r[0] == "Today")
        return [int(cell) for cell in row[1:]]


def number(pattern: str, words: str) -> int:
    found = re.search(pattern, words)
    assert found, (pattern, words)
    return int(found[1].replace(",", ""))


@pytest.fixture
def pages(app: FastAPI, library: Library, clock: Clock) -> Iterator[Pages]:
    live(app.state.engine, library, KEY, RICH, clock())
    with visit(app) as client:
        client.cookies.set(COOKIE, Signer(SECRET, salt="learner").sign(KEY).decode())
        yield Pages(client)


@pytest.fixture(params=[None, 1, 2, 3, 16], ids=str)
def days(request: pytest.FixtureRequest, session: Session, pages: Pages) -> int | None:
    """The days to the exam, with a day of 45 minutes."""
    assert pages  # written down first
    learner = session.exec(select(Learner)).one()
    learner.minutes_a_day = 45
    day = dt.date(2026, 6, 9) + dt.timedelta(days=request.param or 0)
    learner.exam_day = day.isoformat() if request.param else None
    learner.changes += 1
    session.commit()
    return request.param


def parts(words: str) -> tuple[int, ...]:
    """What the cards of the day are: reviews, new ones, those in their steps."""
    looks = re.search(r"(\d+) (?:reviews?|to see once more)\b", words)
    fresh = re.search(r"(\d+) new cards?, |(\d+) new cards? ·", words)
    steps = re.search(r"(\d+) still being learned", words)
    return tuple(
        int(next(filter(None, found.groups()))) if found else 0 for found in (looks, fresh, steps)
    )


def test_the_cards_of_the_day_are_one_number(pages: Pages, days: int | None) -> None:
    for rating in (3, 1, 4, 2):
        answer(pages.client, rating)
    today, desk = pages.words("/"), pages.words("/flashcards")
    left = number(r"(\d+) left\b", desk)
    new, learning, due = (
        number(rf"\b{name} (\d+)", desk) for name in ("New", "Learning", "(?:Due|Once more)")
    )
    of_desk = (due, new, learning)

    assert number(r"(?:Review|Study) (\d+) cards", today) == left
    assert parts(today) == of_desk
    assert sum(of_desk) == left
    reviews, fresh, steps = of_desk
    assert pages.today("/") == [reviews + steps]
    assert pages.today("/progress") == [reviews + steps]
    if days:
        *cards, _minutes = pages.today("/plan")
        assert sum(cards) == left
        assert cards[1] == fresh
        plan = pages.page("/plan").partition('aria-current="date"')[2]
        plan = re.sub(r"(\d+) new\b", r"\1 new cards", plan)
        assert parts(plan.replace("once more", "to see once more")) == of_desk
        waits = r"\d+ more cards? (?:is|are) due(?: and wait|; the plan)[^.\u00b7]*\w"
        said = list(dict.fromkeys(re.findall(waits, today)))
        assert re.findall(waits, pages.words("/progress")) == said
        assert re.findall(waits, pages.words("/plan")) == said


def answer(client: TestClient, rating: int) -> None:
    """Grade the card on the desk."""
    page = client.get("/flashcards").text
    card = re.findall(r'name="card" value="([^"]+)"', page)[0]
    page = client.get(f"/flashcards?card={card}&show=1").text
    fields = dict(re.findall(r'name="(token|who|since)" value="([^"]*)"', page))
    body = {**fields, "rating": rating}
    posted = client.post(f"/flashcards/{card}/reviews", data=body)
    assert posted.status_code == 303, posted.text


def test_the_pace_of_new_cards_is_one_number(pages: Pages, days: int | None) -> None:
    pace = re.findall(r"bout (\d+) new cards a day", pages.words("/"))
    if not days:
        assert pace == []
        return

    assert re.findall(r"bout (\d+) new cards a day", pages.words("/plan")) == pace
    assert bool(pace) == (days > 1)


def test_the_first_day_of_the_plan_is_what_today_proposes(pages: Pages, days: int | None) -> None:
    _, _, today = pages.page("/").partition(">Today\u2019s plan")
    today = today.partition("</ol>")[0]
    if not days:
        return
    table = pages.page("/plan").partition('aria-current="date"')[2]
    row = table.partition("</tr>")[0]

    read = r'href="/concepts/([a-z0-9-]+)'
    assert set(re.findall(read, row)) == set(re.findall(read, today))
    asked = re.findall(r">(\d+) questions: ", today)
    assert re.findall(r"(\d+) on ", row) == asked
    assert ("/exams/" in today) == ("/exams" in row)


def test_the_new_cards_of_today_are_one_number_where_the_minutes_hold_few(
    app: FastAPI,
) -> None:
    with visit(app) as client:
        pages = Pages(client)
        body = {"exam_day": "2026-07-04", "minutes_a_day": "10"}
        assert client.post("/plan", data=body).status_code == 303
        read = {"section": "how-the-terms-are-nested"}
        client.post("/concepts/ai-ml-deep-learning/readings", data=read)

        some = re.search(r"Learn (\d+) of (\d+) new cards", pages.words("/"))
        assert some, pages.words("/")
        _due, fresh, _final, minutes = pages.today("/plan")
        days = pages.page("/plan").partition('aria-current="date"')[2]
        row = days.partition("</tr>")[0]

        assert fresh == int(some[1]) < int(some[2])
        assert re.search(rf"\b{fresh} new\b", row), row
        assert minutes == fresh


def test_the_cards_not_started_are_those_that_no_day_begins(app: FastAPI) -> None:
    with visit(app) as client:
        pages = Pages(client)
        body = {"exam_day": "2026-07-04", "minutes_a_day": "30"}
        assert client.post("/plan", data=body).status_code == 303

        words, rows = pages.words("/plan"), pages.rows("/plan")
        whole = number(r"0 of ([\d,]+) cards are started", words)
        _, *days = rows[next(n for n, row in enumerate(rows) if row[0:2] == HEAD) :][: 1 + 25]
        begun = sum(int(row[2]) for row in days)

        assert 0 < begun < whole
        assert number(r"([\d,]+) cards will not be started", words) == whole - begun
        way = next(row for row in rows if row[0] == "as planned")
        assert int(way[2]) == begun


def test_what_is_to_go_is_what_the_days_hold(pages: Pages, days: int | None) -> None:
    if not days:
        return
    words, rows = pages.words("/plan"), pages.rows("/plan")
    first = next(n for n, row in enumerate(rows) if row[0:2] == HEAD) + 1
    ahead = rows[first : first + days]

    looks = sum(int(row[1]) + int(row[3]) for row in ahead)
    assert number(r"([\d,]+) new cards?, [\d,]+ reviews?", words) == sum(
        int(row[2]) for row in ahead
    )
    assert number(r"new cards?, ([\d,]+) reviews?", words) == looks


def test_minutes_add_up_as_they_are_shown(pages: Pages, days: int | None) -> None:
    _, _, today = pages.words("/").partition("Today\u2019s plan takes")
    whole, _, steps = today.partition("1 Study")
    parts = re.findall(r"\u00b7 about (\d+) minutes?", steps.partition("If you have")[0])
    assert sum(map(int, parts)) == number(r"about (\d+) minutes?", whole)
    if not days:
        return
    weeks, first = [], 0
    for row in pages.rows("/plan"):
        if (said := re.fullmatch(r"(\d+) min", row[-1])) and row[0].startswith("Week"):
            weeks.append([int(said[1])])
        elif said:
            weeks[-1].append(int(said[1]))
            first = first or int(said[1])
    assert all(sum(rest) == total for total, *rest in weeks)
    assert first == sum(map(int, parts))
    total = sum(week[0] for week in weeks)
    hours = re.search(r": (?:(\d+) h)? ?(?:(\d+) min)? to go", pages.words("/plan"))
    assert hours
    assert int(hours[1] or 0) * 60 + int(hours[2] or 0) == total


def test_what_mixed_practice_has_leaves_out_what_is_kept_for_exams(
    pages: Pages,
) -> None:
    practice = pages.words("/quiz")
    new = number(r"([\d,]+) not answered\.", practice)
    kept = number(r"([\d,]+) are kept for mock exams", practice)
    assert (
        number(r"([\d,]+) questions? that you can practice and have not answered", practice)
        == new - kept
    )


def test_the_questions_of_an_objective_are_one_number(pages: Pages, library: Library) -> None:
    practice = {row[0].split()[0]: row for row in pages.rows("/quiz") if row}
    progress = {row[0].split()[0]: row[-1] for row in pages.rows("/progress") if row}
    for domain in library.syllabus.domains:
        for goal in domain.objectives:
            named = [q for q in library.questions.values() if goal.number in q.objectives]
            answered, of, *_ = map(int, re.findall(r"\d+", progress[goal.number]))
            *_, unseen, all_ = practice[goal.number]
            assert (answered, of) == (int(all_) - int(unseen), int(all_))
            assert of == len(named)


@pytest.mark.parametrize("answers", [1, 12, 150])
def test_what_is_said_of_an_objective_is_one_word(
    app: FastAPI, library: Library, clock: Clock, answers: int
) -> None:
    past = dataclasses.replace(RICH, answers=answers)
    live(app.state.engine, library, KEY, past, clock())
    with visit(app) as client:
        client.cookies.set(COOKIE, Signer(SECRET, salt="learner").sign(KEY).decode())
        pages = Pages(client)
        practice = {row[0].split()[0]: row[1] for row in pages.rows("/quiz") if row}
        progress = {row[0].split()[0]: row for row in pages.rows("/progress") if row}
        today = pages.words("/").partition("Map of the exam")[2]

        for domain in library.syllabus.domains:
            for goal in domain.objectives:
                said = practice[goal.number]
                assert re.fullmatch(r"\d+%|few answers|not tested", said)
                assert progress[goal.number][2].partition(" ,")[0] == said
                assert f" {goal.number} {goal.name} {said} " in today


def test_too_few_answers_are_fewer_than_the_five_that_are_asked_for(
    pages: Pages,
) -> None:
    every = pages.rows("/progress")
    rows = [r for r in every if "few answers" in r and " of " in r[-1]]

    assert rows
    for row in rows:
        answered, _of, *counted = map(int, re.findall(r"\d+", row[-1]))
        assert min([answered, *counted]) < 5


def test_the_questions_of_the_domains_add_up(pages: Pages, library: Library) -> None:
    domains = re.findall(r"(\d+) in all", pages.words("/quiz"))

    assert sum(map(int, domains)) == len(library.questions)


def test_a_page_stands_once_with_its_counts_on_the_course(pages: Pages, library: Library) -> None:
    course = pages.page("/course")

    for slug, topic in library.topics.items():
        assert course.count(f'<a href="/quiz/{slug}">') == bool(topic.questions)


def tally(words: str) -> tuple[int, int]:
    """Answered and all, of “3 right, 1 missed, 1,004 not answered”."""
    plain = re.sub(r"(?<=\d),(?=\d)", "", words.strip())
    found = re.match(r"(?:(\d+) right, (\d+) missed, )?(\d+) not answered", plain)
    assert found, words[:60]
    right, missed, new = (int(n or 0) for n in found.groups())
    return right + missed, right + missed + new


def test_the_questions_of_a_topic_are_one_number(pages: Pages, library: Library) -> None:
    practice, course = pages.words("/quiz"), pages.page("/course")
    _, _, practice = practice.partition("By page")
    for slug, topic in library.topics.items():
        found = re.search(rf'<a href="/quiz/{slug}">\s*(.*?)\s*</a>', course, re.DOTALL)
        assert found
        said = [int(n) for n in re.findall(r"\d+", found[1])]
        answered, of = said if len(said) == 2 else (0, said[0])
        _, _, after = practice.partition(f" {topic.title} ")
        assert tally(after) == (answered, of)


def test_all_questions_are_the_sum_of_those_answered_missed_and_new(
    pages: Pages, library: Library, session: Session
) -> None:
    items = set(session.exec(select(Attempt.item)))

    practice = pages.words("/quiz")

    assert number(r"([\d,]+) questions:", practice) == len(library.questions)
    assert tally(practice.partition("questions: ")[2]) == (
        len(items),
        len(library.questions),
    )


def test_the_questions_missed_are_one_number(
    pages: Pages, library: Library, session: Session
) -> None:
    today, practice = pages.words("/"), pages.words("/quiz")
    rows = session.exec(select(Attempt).order_by(Attempt.at, Attempt.id)).all()
    last = {row.item: row.score for row in rows}
    wrong = [library.questions[item] for item, score in last.items() if score < 1]

    missed = number(r"Go over the (\d+) questions you missed", today)

    assert missed == len(wrong)
    assert missed == number(r"Missed before (\d+) questions", practice)
    assert sum(question.drawable for question in wrong) == number(
        r"Only what you missed (\d+) questions", pages.words("/exams")
    )


def test_a_paper_draws_each_question_from_one_domain(pages: Pages, library: Library) -> None:
    exam = next(iter(library.exams))
    rows = [row for row in pages.rows(f"/exams/{exam}") if len(row) == 3]

    held = sum(int(row[2]) for row in rows[1:])

    assert len(rows) == 1 + len(library.syllabus.domains)
    assert 0 < held <= len(library.questions)
