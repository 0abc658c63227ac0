"""A mock exam whose key was mended counts anew, and says so."""

import json

from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.authoring.store import load_first_finished_sittings
from app.database.tables import Learner, Sitting, SittingAnswer
from app.exams.store import load_finished_sittings
from app.progress.store import load_closed_sitting_results
from app.quiz.store import save_revision_once
from tests.authoring.mended import (
    ACCURACY,
    ITEM,
    MEMORY,
    NOW,
    Author,
    attempts,
    regrade,
)
from tests.exams.sitting import begin, finish, save


def begun(client: TestClient, session: Session, author: Author) -> str:
    """An exam whose first question is the one; returns its address."""
    sitting = begin(client)
    row = session.exec(select(Sitting).order_by(Sitting.id.desc())).first()
    assert row is not None
    _, *others = json.loads(row.paper)
    slot = [1, ITEM, author.question.revision, 7, "2"]
    row.paper = json.dumps([slot, *(other for other in others if other[1] != ITEM)])
    save_revision_once(session, author.question, NOW)
    session.commit()
    return sitting


def sat(client: TestClient, session: Session, author: Author, *words: str) -> str:
    """A finished exam whose first question was answered, once or again."""
    sitting = begun(client, session, author)
    for option in words:
        save(client, sitting, 1, answer=author.key_of(option))
    assert finish(client, sitting).status_code == 303
    return sitting


def test_a_closed_exam_counts_by_the_mended_key_and_says_what_it_was(
    app: FastAPI, rosa: TestClient, session: Session, author: Author
):
    sitting = sat(rosa, session, author, ACCURACY)
    assert '<h1 class="count"><b>0</b> of ' in rosa.get(f"{sitting}/report").text
    learner = session.exec(select(Learner.id)).one()
    before = attempts(session)
    kept = session.exec(select(SittingAnswer)).one().model_dump()
    author.mends(ACCURACY)

    assert regrade(app.state.engine, author) == 1

    report = rosa.get(f"{sitting}/report").text
    assert '<h1 class="count"><b>1</b> of ' in report
    assert "The answer key of 1\u00a0question was corrected after this exam" in report
    assert "before, it was 0 of" in report
    assert "right, key corrected" in report
    solution = rosa.get(f"{sitting}/questions/1").text
    assert "Right." in solution
    assert "The answer key was corrected later" in solution
    assert attempts(session) == before
    assert session.exec(select(SittingAnswer)).one().model_dump() == kept
    assert [score for _, score, _ in load_finished_sittings(session, learner)] == [1]
    assert [result.score for result in load_closed_sitting_results(session, learner, 5)] == [1]
    assert [
        sum(paper.score_by_position) for paper in load_first_finished_sittings(session, "")
    ] == [1]


def test_an_exam_whose_points_stay_says_nothing_of_it(
    app: FastAPI, rosa: TestClient, milo: TestClient, session: Session, author: Author
):
    sitting = sat(rosa, session, author, ACCURACY)
    others = sat(milo, session, author, MEMORY)
    author.mends(MEMORY)
    author.writes("Accuracy for speed", "Accuracy for haste")
    assert regrade(app.state.engine, author) == 0

    for client, address in ((rosa, sitting), (milo, others)):
        report = client.get(f"{address}/report").text
        assert "mended" not in report


def test_a_changed_answer_is_judged_by_the_mended_key(
    app: FastAPI, rosa: TestClient, session: Session, author: Author
):
    sitting = sat(rosa, session, author, MEMORY, ACCURACY)
    assert "Right to wrong" in rosa.get(f"{sitting}/report").text
    author.mends(ACCURACY)

    regrade(app.state.engine, author)

    assert "Wrong to right" in rosa.get(f"{sitting}/report").text
