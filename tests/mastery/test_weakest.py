"""One order of weakness: what Today names first is what practice asks first."""

import dataclasses
import datetime as dt
import re

import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.clock import to_milliseconds
from app.content.library import Library
from app.database.tables import Attempt, Learner, PracticeRun
from app.mastery.evidence import AnswerHistory
from app.mastery.objectives import NOTHING, LearnerEvidence, build_standings, readable_anchors
from app.mastery.question_counts import WeakObjective, weakest_first
from tests.conftest import Clock

TODAY = dt.date(2026, 6, 9)
LONG_AGO = TODAY - dt.timedelta(days=8)


def ordered(
    library: Library, day: dt.date = LONG_AGO, **scores: float
) -> tuple[WeakObjective, ...]:
    """The order after every question of the topics was answered with a score."""
    firsts = {
        question: AnswerHistory(score, day)
        for slug, score in scores.items()
        for question in library.topics[slug.replace("_", "-")].questions
    }
    record = dataclasses.replace(NOTHING, firsts=firsts)
    return weakest_first(library, record, build_standings(library, record, TODAY))


def numbers(order: tuple[WeakObjective, ...]) -> list[str]:
    return [weak.standing.objective.number for weak in order]


def test_the_lowest_tested_is_first(library: Library):
    order = ordered(library, weights=1.0, kv_cache=0.0)

    assert numbers(order)[0] == "2.1"
    assert order[0].lowest
    assert order[0].why.startswith("your weakest so far: ")


def test_what_rests_on_something_weak_gives_way(library: Library):
    """The cache builds on the weights, of which less than half is known."""
    order = ordered(library, weights=0.35, kv_cache=0.3)

    assert numbers(order)[:2] == ["1.1", "2.1"]
    assert order[0].why.endswith("expected; weaker ones build on pages to learn first")
    assert order[1].ground is not None


def test_weak_ground_does_not_hide_what_stands_much_lower(library: Library):
    order = ordered(library, weights=0.55, kv_cache=0.0)

    assert numbers(order)[:2] == ["2.1", "1.1"]
    assert order[0].ground is not None


def test_what_was_asked_out_lately_is_not_the_next_thing(library: Library):
    """Every question was answered today: another answer would say nothing."""
    today = ordered(library, TODAY, kv_cache=0.0)

    assert numbers(today) == ["1.1", "2.1"]
    assert today[1].low
    assert today[1].asked_out
    assert not ordered(library, LONG_AGO, kv_cache=0.0)[0].asked_out


def test_what_is_known_well_is_no_lowest(library: Library):
    (first, *_rest) = ordered(library, weights=1.0, kv_cache=1.0)

    assert "lowest" not in first.why
    assert first.asked_out


def test_what_was_hardly_tested_comes_before_what_is_known(library: Library):
    order = ordered(library, weights=1.0)

    assert numbers(order) == ["2.1", "1.1"]
    assert (order[0].why, order[1].asked_out) == ("not tested yet", True)


def test_what_was_read_is_asked_before_what_was_not(library: Library):
    pages = {"kv-cache": readable_anchors(library.topics["kv-cache"])}
    record = LearnerEvidence({}, {}, pages)

    order = weakest_first(library, record, build_standings(library, record, TODAY))

    assert numbers(order) == ["2.1", "1.1"]


@pytest.mark.parametrize(("low", "high"), [("kv-cache", "weights"), ("weights", "")])
def test_practice_begins_where_today_points(
    rosa: TestClient,
    session: Session,
    library: Library,
    clock: Clock,
    low: str,
    high: str,
):
    rosa.post("/concepts/weights/readings", data={"section": "two-bytes-each"})
    learner = session.exec(select(Learner)).one()
    for slug, score in ((low, 0.0), (high, 1.0)):
        for item in library.topics[slug].questions if slug else ():
            row = Attempt(learner_id=learner.id, token=item, item=item, revision="r")
            row.topic, row.seed, row.context = slug, 1, "quiz"
            row.raw = row.parsed = "{}"
            row.score, row.first, row.study_day = score, True, LONG_AGO.isoformat()
            row.at = to_milliseconds(clock())
            session.add(row)
    learner.changes += 1
    session.commit()

    said = re.search(r"Objective (\d\.\d), ([^·]*) ·", rosa.get("/").text)
    page = rosa.get("/quiz").text
    rosa.post("/quiz/runs", data={"pick": "weakest", "count": "5", "token": "t" * 20})

    assert said
    weakest = re.search(r"Weakest first</h2>\s*<p>(\d\.\d) .*?,\s([^<]*)</p>", page)
    assert weakest
    assert said.groups() == weakest.groups()
    items = session.exec(select(PracticeRun.items)).one()
    goals = library.questions[re.findall(r'"([^"]+)"', items)[0]].objectives
    assert said[1] in goals
    today = re.search(r'href="(/quiz/[^"]+)"', rosa.get("/").text)
    assert today
    offered = rosa.get(today[1]).text
    asked = {q.id for q in library.questions.values() if said[1] in q.objectives}
    found = set(re.findall(r'<a href="/quiz/[a-z0-9-]+/([a-z0-9-]+)"', offered))
    assert found <= asked
    assert rosa.get("/quiz/objectives/9.9").status_code == 404
