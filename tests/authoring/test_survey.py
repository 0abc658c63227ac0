"""The statistics are computed when something changed, and shown with their age."""

import csv
import io
from concurrent.futures import ThreadPoolExecutor

import pytest
from fastapi import FastAPI
from sqlalchemy import delete, event, func, select

from app.authoring.statistics_tables import StatisticsCache
from app.database.tables import Attempt, Learner


def counts(client) -> dict[str, str]:
    text = client.get("/authoring/questions?format=csv").text
    return {row["item"]: row["count"] for row in csv.DictReader(io.StringIO(text[1:]))}


@pytest.fixture
def read(app: FastAPI) -> list[str]:
    """The statements that read answers."""
    statements: list[str] = []

    def note(_connection, _cursor, statement, *_rest) -> None:
        if "attempt.parsed" in statement:
            statements.append(statement)

    event.listen(app.state.engine, "before_cursor_execute", note)
    return statements


def test_new_answers_count_at_once(client, crowd, course):
    crowd.all_answer(course.questions.values(), crowd.join(12))
    assert counts(client)["k-trade"] == "12"

    crowd.all_answer(course.questions.values(), crowd.join(3))

    assert counts(client)["k-trade"] == "15"


def test_without_new_answers_none_is_read(client, crowd, course, read):
    crowd.all_answer(course.questions.values(), crowd.join(12))

    counts(client)
    counts(client)

    assert len(read) == 1


def test_who_erased_everything_leaves_the_statistics(client, crowd, course):
    learners = crowd.join(12)
    crowd.all_answer(course.questions.values(), learners)
    counts(client)

    crowd.session.execute(delete(Learner).where(Learner.id == learners[0]))
    crowd.session.commit()

    assert counts(client)["k-trade"] == "11"


def test_an_erasure_shows_also_where_as_many_answers_took_the_numbers(client, crowd, course):
    one, other = course.questions["k-trade"], course.questions["w-bf16-70b"]
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


def test_those_that_took_long_are_shown_with_their_age(client, crowd, course, clock, monkeypatch):
    monkeypatch.setattr("app.authoring.statistics_tables._SLOW_COMPUTATION_SECONDS", 0)
    monkeypatch.setattr("app.authoring.statistics_tables._REUSE_PER_COMPUTATION_TIME", 1e9)
    crowd.all_answer(course.questions.values(), crowd.join(12))
    client.get("/authoring/questions")
    crowd.all_answer(course.questions.values(), crowd.join(3))
    clock.tick(minutes=2)

    html = client.get("/authoring/questions").text

    assert "Computed 2\u00a0minutes ago." in html
    assert counts(client)["k-trade"] == "12"


def test_those_that_were_quick_are_of_this_moment(client, crowd, course, clock, monkeypatch):
    monkeypatch.setattr("app.authoring.statistics_tables._SLOW_COMPUTATION_SECONDS", 1e9)
    monkeypatch.setattr("app.authoring.statistics_tables._REUSE_PER_COMPUTATION_TIME", 1e9)
    crowd.all_answer(course.questions.values(), crowd.join(12))
    client.get("/authoring/questions")
    crowd.all_answer(course.questions.values(), crowd.join(3))
    clock.tick(minutes=2)

    assert "Computed just now." in client.get("/authoring/questions").text
    assert counts(client)["k-trade"] == "15"


def test_many_who_look_at_once_wait_for_one_computation(app: FastAPI, crowd, course, read):
    crowd.all_answer(course.questions.values(), crowd.join(12))
    cache: StatisticsCache = app.state.statistics[""]

    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(lambda _: cache.get_recent_statistics(), range(20)))

    assert len(read) == 1
    assert {
        result.statistics_by_revision["k-trade", course.questions["k-trade"].revision].count
        for result in results
    } == {12}
