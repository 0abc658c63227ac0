"""A mended key counts for the answers given before, by rows beside them."""

import csv
import dataclasses
import io
import json
import re
import threading
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func
from sqlmodel import Session, select

from app.authoring.regrading import preview_regrade, write_regrades_of_preview
from app.cli import main
from app.database.engine import WRITE_OPTIONS
from app.database.tables import Attempt, AuditEntry, ItemRevision, Learner, Regrade
from app.import_export.export_store import iterate_attempt_rows as exported
from app.questions.grading import RegradeRefusal
from app.quiz.store import QUESTION, find_run, load_past_attempts_by_question, save_revision_once
from app.settings import Settings
from tests.authoring.mended import (
    ACCURACY,
    AT,
    BANDWIDTH,
    ITEM,
    MEMORY,
    NOW,
    Author,
    answer,
    attempts,
    regrade,
)

pytestmark = pytest.mark.usefixtures("read_once")

OTHER_WORDS = ("What does a KV cache trade?", "What is the trade of a KV cache?")


@pytest.fixture
def environment(settings: Settings, folder: Path, monkeypatch) -> None:
    """What the server was started with, for the command beside it."""
    monkeypatch.setenv("HEADROOM_DATA", str(settings.data))
    monkeypatch.setenv("HEADROOM_DATABASE_URL", settings.database_url)
    monkeypatch.setenv("HEADROOM_SECRET", settings.secret)
    monkeypatch.setenv("HEADROOM_CONTENT", str(folder))


def current(session: Session) -> dict[int, float]:
    session.rollback()
    return {row["id"]: row["current_score"] for row in exported(session)}


# --- every reader ---


def test_every_reader_counts_the_new_score_and_the_log_stays(
    app: FastAPI, rosa: TestClient, session: Session, author: Author
):
    verdict = answer(rosa, author.key_of(ACCURACY))
    assert "Not right." in rosa.get(verdict).text
    learner = session.exec(select(Learner.id)).one()
    assert load_past_attempts_by_question(session, learner)[ITEM].was_last_missed
    before = attempts(session)
    author.mends(ACCURACY)

    assert regrade(app.state.engine, author) == 1

    assert attempts(session) == before
    assert not load_past_attempts_by_question(session, learner)[ITEM].was_last_missed
    (row,) = exported(session)
    assert (row["score"], row["current_score"]) == (0, 1)
    assert row["revision"] != row["current_revision"] == author.question.revision
    page = rosa.get(verdict).text
    assert "Right." in page
    assert "The answer key was corrected later" in page
    assert "The question was edited" not in page


def test_a_page_that_was_kept_is_made_anew(app: FastAPI, rosa: TestClient, author: Author):
    verdict = answer(rosa, author.key_of(ACCURACY))
    author.mends(ACCURACY)
    for _ in range(2):
        assert "Not right." in rosa.get(verdict).text

    regrade(app.state.engine, author)

    assert "Not right." not in rosa.get(verdict).text


def test_a_run_counts_it(app: FastAPI, rosa: TestClient, author: Author):
    begun = rosa.post("/quiz/runs", data={"pick": "topic:kv-cache", "count": "20"})
    run = begun.headers["location"].rpartition("/")[2]
    answer(rosa, author.key_of(BANDWIDTH), run=run, context="practice")
    author.mends(BANDWIDTH)

    regrade(app.state.engine, author)

    with Session(app.state.engine) as db:
        learner = db.exec(select(Learner.id)).one()
        assert find_run(db, learner, int(run)).last_answer_by_question[ITEM][1] == 1


def test_statistics_count_it_under_the_wording_of_now(
    client: TestClient, app: FastAPI, crowd, author: Author
):
    question = author.question
    save_revision_once(crowd.session, question, NOW)
    wrong, right = author.key_of(MEMORY), author.key_of(ACCURACY)
    for number, learner in enumerate(crowd.join(12)):
        key = (wrong, right)[number % 3 == 0]
        raw = json.dumps({"answer": [key]})
        crowd.answer(question, learner, float(key == wrong), key, raw=raw)
    crowd.session.commit()
    assert facility(client) == ("12", "66.67", "0")

    author.mends(ACCURACY)
    assert facility(client) == ("0", "", "12")
    regrade(app.state.engine, author)

    assert facility(client) == ("12", "33.33", "0")


def facility(client: TestClient) -> tuple[str, str, str]:
    text = client.get("/authoring/questions?format=csv").text
    rows = {row["item"]: row for row in csv.DictReader(io.StringIO(text[1:]))}
    row = rows[ITEM]
    return row["count"], row["facility"], row["answers_before"]


# --- what is graded again ---


def test_answers_whose_score_stays_are_marked_for_the_statistics_alone(
    app: FastAPI, rosa: TestClient, milo: TestClient, session: Session, author: Author
):
    answer(rosa, author.key_of(ACCURACY))
    answer(milo, author.key_of(BANDWIDTH))
    author.mends(ACCURACY)

    with Session(app.state.engine) as db:
        regrading = preview_regrade(db, "", author.question)

    assert (regrading.answer_count, regrading.unchanged_count, len(regrading.scores_to_write)) == (
        2,
        1,
        2,
    )
    assert (
        regrading.impact.answers,
        regrading.impact.learners,
        regrading.impact.first_answers,
    ) == (1, 1, 1)
    assert [(e.old_score, e.new_score) for e in regrading.score_changes] == [(0, 1)]
    regrade(app.state.engine, author)
    assert sorted(current(session).values()) == [0, 1]


def test_without_a_change_of_any_score_nothing_is_written(
    app: FastAPI, rosa: TestClient, session: Session, author: Author
):
    answer(rosa, author.key_of(ACCURACY))
    author.writes("The cached values are exact.", "They are exact.")

    assert regrade(app.state.engine, author) == 0
    assert session.exec(select(Regrade)).all() == []
    assert session.exec(select(AuditEntry)).all() == []
    assert len(session.exec(select(ItemRevision)).all()) == 1


def test_other_words_are_left_out_unless_they_mean_the_same(
    app: FastAPI, rosa: TestClient, author: Author
):
    answer(rosa, author.key_of(ACCURACY))
    author.mends(ACCURACY)
    author.writes(*OTHER_WORDS)

    with Session(app.state.engine) as db:
        regrading = preview_regrade(db, "", author.question)
    assert regrading.refusals == ((RegradeRefusal.WORDS, 1),)
    assert regrade(app.state.engine, author) == 0
    assert regrade(app.state.engine, author, reworded=True) == 1


def test_a_wording_that_cannot_be_read_any_more_is_said_to_be(
    app: FastAPI, rosa: TestClient, session: Session, author: Author
):
    answer(rosa, author.key_of(ACCURACY))
    for row in session.exec(select(ItemRevision)):
        row.body = "{}"
    session.commit()
    author.mends(ACCURACY)

    with Session(app.state.engine) as db:
        regrading = preview_regrade(db, "", author.question)

    assert regrading.refusals == ((RegradeRefusal.LOST, 1),)


def test_who_erased_everything_meanwhile_is_left_out(
    app: FastAPI, rosa: TestClient, milo: TestClient, session: Session, author: Author
):
    for client in (rosa, milo):
        answer(client, author.key_of(ACCURACY))
    author.mends(ACCURACY)
    with Session(app.state.engine) as db:
        regrading = preview_regrade(db, "", author.question)

    rosa.post("/settings/erasure", data={"word": "erase"})

    with Session(app.state.engine) as db:
        db.connection(execution_options=WRITE_OPTIONS)
        assert write_regrades_of_preview(db, "", regrading, 0, NOW) == 1
        db.commit()
    milo.post("/settings/erasure", data={"word": "erase"})
    assert session.exec(select(Regrade)).all() == []


# --- again and again ---


@given(keys=st.lists(st.sampled_from([ACCURACY, MEMORY, BANDWIDTH]), min_size=1))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_was_mended_before_the_last_key_counts(app: FastAPI, course, keys: list[str]):
    """Keys come and go; each is confirmed twice, and the last one counts."""
    wordings = {words: with_key(course.questions[ITEM], words) for words in keys}
    begun = course.questions[ITEM]
    with Session(app.state.engine) as db:
        db.connection(execution_options=WRITE_OPTIONS)
        learner = Learner(key="k", created_at=0)
        db.add(learner)
        db.flush()
        save_revision_once(db, begun, NOW)
        db.add_all(an_attempt(learner.id or 0, begun, o) for o in options(begun))
        db.flush()
        log = db.execute(select(Attempt.__table__)).all()
        for words in keys:
            regrading = preview_regrade(db, "", wordings[words])
            changes = bool(regrading.impact.answers)
            assert write_regrades_of_preview(db, "", regrading, 0, NOW) == (3 if changes else 0)
            again = preview_regrade(db, "", wordings[words])
            assert again.impact.answers == 0
            assert (
                write_regrades_of_preview(db, "", again, 0, NOW)
                == write_regrades_of_preview(db, "", regrading, 0, NOW)
                == 0
            )
            scores = {row["raw"]: row["current_score"] for row in exported(db)}
            assert scores == {raw_of(o): o.right for o in options(wordings[words])}
        assert db.execute(select(Attempt.__table__)).all() == log
        db.rollback()


def options(question):
    return question.answer.options


def with_key(question, words: str):
    """The question with another key; every key has a revision, as files have it."""
    made = tuple(dataclasses.replace(o, right=o.text.plain == words) for o in options(question))
    if made == options(question):
        return question
    answer_part = dataclasses.replace(question.answer, options=made)
    return dataclasses.replace(question, answer=answer_part, revision=words[:3])


def raw_of(option) -> str:
    return json.dumps({"answer": [option.key]})


def an_attempt(learner: int, question, option) -> Attempt:
    return Attempt(
        learner_id=learner,
        token=f"{learner}{option.key}",
        item=ITEM,
        revision=question.revision,
        topic="kv-cache",
        seed=1,
        context="quiz",
        raw=raw_of(option),
        parsed=json.dumps({"chosen": [option.key]}),
        score=float(option.right),
        first=True,
        study_day="2026-06-09",
        at=0,
    )


def test_two_who_confirm_at_once_write_one_row_for_each_answer(
    app: FastAPI, rosa: TestClient, milo: TestClient, session: Session, author: Author
):
    for client in (rosa, milo):
        answer(client, author.key_of(ACCURACY))
    author.mends(ACCURACY)
    with Session(app.state.engine) as db:
        regrading = preview_regrade(db, "", author.question)
    counts, start = [], threading.Barrier(4)

    def confirm_it() -> None:
        with Session(app.state.engine) as db:
            start.wait()
            db.connection(execution_options=WRITE_OPTIONS)
            counts.append(write_regrades_of_preview(db, "", regrading, 0, NOW))
            db.commit()

    threads = [threading.Thread(target=confirm_it) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(counts) == 2
    assert session.scalar(select(func.count()).select_from(Regrade)) == 2
    assert session.scalar(select(func.count()).select_from(AuditEntry)) == 1
    assert set(current(session).values()) == {1.0}


def test_the_wording_of_now_is_kept_for_whoever_looks_later(
    app: FastAPI, rosa: TestClient, session: Session, author: Author
):
    verdict = answer(rosa, author.key_of(ACCURACY))
    mended = author.mends(ACCURACY)
    regrade(app.state.engine, author)
    author.writes(*OTHER_WORDS)

    kept = session.exec(
        select(ItemRevision.body).where(ItemRevision.revision == mended.revision)
    ).one()

    assert QUESTION.validate_json(kept).answer == mended.answer
    page = rosa.get(verdict).text
    assert "Right." in page
    assert "The question was edited after this answer." in page


# --- the bench ---


def test_the_bench_shows_first_and_grades_when_told(
    client: TestClient, rosa: TestClient, session: Session, author: Author
):
    answer(rosa, author.key_of(ACCURACY))
    author.mends(ACCURACY)
    address = AT.removesuffix("/regrading")
    assert f'href="{AT}"' in client.get(address).text

    page = client.get(AT).text

    assert "0 to 1" in page
    assert f"<b>Right now:</b> {ACCURACY}" in page
    assert session.exec(select(Regrade)).all() == []
    revision = re.search(r'name="revision" value="([^"]+)"', page)
    assert revision
    done = client.post(AT, data={"revision": revision[1]})
    assert done.status_code == 303
    assert "1\u00a0answer graded again." in client.get(done.headers["location"]).text
    assert current(session) == {1: 1.0}
    entry = session.exec(select(AuditEntry).order_by(AuditEntry.id.desc())).first()
    assert entry is not None
    assert (entry.action, entry.subject) == ("answers graded again", f"1 of {ITEM}")
    assert entry.session > 0
    assert "No score changes" in client.get(AT).text


def test_the_bench_refuses_a_key_that_nobody_looked_at(
    client: TestClient, rosa: TestClient, session: Session, author: Author
):
    answer(rosa, author.key_of(ACCURACY))
    looked_at = author.mends(BANDWIDTH).revision
    author.mends(ACCURACY)

    refused = client.post(AT, data={"revision": looked_at})

    assert refused.status_code == 409
    assert "Nothing was graded" in refused.text
    assert session.exec(select(Regrade)).all() == []


def test_what_is_not_there_is_404(client: TestClient):
    gone = "/authoring/questions/none/regrading"
    assert client.get(gone).status_code == 404
    assert client.post(gone, data={"revision": "r"}).status_code == 404


def test_a_mended_key_is_named_until_it_counts(
    client: TestClient, app: FastAPI, rosa: TestClient, author: Author
):
    answer(rosa, author.key_of(ACCURACY))
    words = "Its key was corrected: one answer would score differently."
    author.mends(BANDWIDTH)
    assert words not in client.get("/authoring/mend").text
    author.mends(ACCURACY)

    assert words in client.get("/authoring/mend").text
    page = client.get(AT.removesuffix("/regrading")).text
    assert "Its key was corrected: 1\u00a0answer would score" in page

    regrade(app.state.engine, author)

    assert words not in client.get("/authoring/mend").text
    page = client.get(AT.removesuffix("/regrading")).text
    assert "would score differently" not in page


def test_other_words_are_not_taken_for_a_mended_key(
    client: TestClient, rosa: TestClient, author: Author
):
    answer(rosa, author.key_of(ACCURACY))
    author.mends(ACCURACY)
    author.writes(*OTHER_WORDS)

    assert "Its key was corrected" not in client.get("/authoring/mend").text


# --- the command ---


@pytest.mark.usefixtures("environment")
def test_the_command_shows_and_writes_with_yes(
    rosa: TestClient, session: Session, author: Author, capsys
):
    answer(rosa, author.key_of(ACCURACY))
    author.mends(ACCURACY)

    assert main(["regrade", ITEM]) == 0
    said = capsys.readouterr().out
    assert said.splitlines()[0] == f"{ITEM}, topics/kv-cache/quiz.md:7"
    assert re.search(r"0 to 1\s+1\s+1\s+1\s+0", said)
    assert said.endswith("Nothing was written; --yes grades them again.\n")
    assert session.exec(select(Regrade)).all() == []

    assert main(["regrade", ITEM, "--yes"]) == 0
    assert capsys.readouterr().out.endswith("1 answer graded again.\n")
    assert current(session) == {1: 1.0}

    assert main(["regrade", ITEM, "--yes", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["answers"], told["written"]) == (0, 0)


@pytest.mark.usefixtures("environment")
def test_the_command_says_why_an_answer_cannot_be_graded_again(
    rosa: TestClient, author: Author, capsys
):
    answer(rosa, author.key_of(ACCURACY))
    author.writes(*OTHER_WORDS)

    main(["regrade", ITEM])

    said = capsys.readouterr().out
    assert "1 answer cannot be graded again: it was asked in other words" in said
    assert "No score changes" in said


@pytest.mark.usefixtures("environment")
def test_the_command_names_a_question_that_is_not_there_or_not_live(author: Author, capsys):
    assert main(["regrade", "none"]) == 2
    assert "there is no question “none”" in capsys.readouterr().err
    author.writes("q: k-trade\n", "q: k-trade\nstatus: draft\n")

    assert main(["regrade", ITEM]) == 2
    assert "is not live" in capsys.readouterr().err
