"""A class of thirty: its answers in tables, its wrong key found, a spelling accepted."""

import datetime as dt
import json
import re
from collections import Counter
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.authoring.response_table import ResponseOutcome, build_response_table
from app.authoring.store import AnswerFilter, list_logged_answers
from app.content.course import Course
from app.content.live_courses import LiveCourse
from app.database.tables import Attempt, Learner
from app.import_export.export_store import iterate_attempt_rows
from app.questions.grading import grade_response
from app.questions.model import draw_variant
from app.quiz.store import NewAttempt, save_attempt_once
from tests.authoring.classroom import CLASS, NOW, play_class, prepare_course

KINDS = ("k-trade", "k-shrink", "k-size", "k-stay", "k-order", "k-match", "k-cloze", "k-phase")


@pytest.fixture
def folder(folder: Path) -> Path:
    """The course, with two more questions and a wrong key at `k-trade`."""
    return prepare_course(folder)


@pytest.fixture
def class_of_thirty(session: Session, crowd, course: Course) -> list[int]:
    """Thirty learners who answered every question of the course."""
    learners = crowd.join(CLASS)
    play_class(session, course, learners)
    return learners


def log_of(session: Session, item: str) -> list[Attempt]:
    session.rollback()
    return list(session.exec(select(Attempt).where(Attempt.item == item).order_by(Attempt.id)))


def current_scores(session: Session, item: str = "") -> list[float]:
    session.rollback()
    rows = [row for row in iterate_attempt_rows(session) if item in {"", row["item"]}]
    return [row["current_score"] for row in rows]


def answers_page(client: TestClient, item: str, query: str = "") -> str:
    answer = client.get(f"/authoring/questions/{item}/answers{query}")
    assert answer.status_code == 200, answer.text
    return answer.text


@pytest.mark.usefixtures("class_of_thirty")
def test_every_table_agrees_with_the_log(
    client: TestClient, session: Session, course: Course, subtests: pytest.Subtests
) -> None:
    for item in KINDS:
        with subtests.test(item):
            question, log = course.questions[item], log_of(session, item)
            logged = list_logged_answers(session, "", item, AnswerFilter())
            table = build_response_table(question, logged)

            assert table.answer_count == len(log) >= 20
            assert table.unreadable_count == table.dont_know_count == 0
            right = sum(row.score == 1 for row in log)
            if table.response_groups:
                assert sum(group.learner_count for group in table.response_groups) == len(log)
                counted = [
                    g.learner_count
                    for g in table.response_groups
                    if g.outcome is ResponseOutcome.ACCEPTED
                ]
                assert sum(counted) == right
            for part in table.part_tables:
                assert sum(response.count for response in part.responses) == len(log)
                good = [r.count for r in part.responses if r.right]
                assert sum(good) == part.right_count >= right
            assert sum(row.count for row in table.certainty_rows) == len(log)
            assert sum(row.count for row in table.time_rows) == len(log)
            assert f"{len(log)}\xa0answers" in answers_page(client, item)


@pytest.mark.usefixtures("class_of_thirty")
def test_typed_answers_are_grouped_by_what_they_are_graded_as(
    session: Session, course: Course
) -> None:
    logged = list_logged_answers(session, "", "k-phase", AnswerFilter())
    table = build_response_table(course.questions["k-phase"], logged)

    found = {g.outcome: {r.text: r.count for r in g.responses} for g in table.response_groups}
    assert found == {
        ResponseOutcome.ACCEPTED: {"prefill": 12},
        ResponseOutcome.FORESEEN: {"decode": 5},
        ResponseOutcome.OTHER: {"Prefill phase": 10, "reading": 3},
    }


@pytest.mark.usefixtures("class_of_thirty")
def test_the_wrong_key_is_found_and_no_good_question_flagged(client: TestClient) -> None:
    html = client.get("/authoring/mend").text

    flagged = re.findall(r'<a class="mono" href="/authoring/questions/([\w-]+)">', html)
    assert flagged == ["k-trade"]
    assert "strong learners choose “Memory for compute”" in html


@pytest.mark.usefixtures("class_of_thirty")
def test_a_spelling_is_accepted_in_the_file_and_regraded(
    client: TestClient, session: Session, folder: Path, live_course: LiveCourse
) -> None:
    revision = live_course.get_current_course().questions["k-phase"].revision
    form = {"answer": "prefill phase", "revision": revision}
    before = log_of(session, "k-phase")

    sent = client.post("/authoring/questions/k-phase/acceptance", data=form)

    assert sent.status_code == 303, sent.text
    text = (folder / "topics/kv-cache/quiz.md").read_text()
    assert "- [x] `prefill`\n- [x] `prefill phase`\n- [ ] `decode`\n  > That is" in text
    page = client.get(sent.headers["location"]).text
    assert "“prefill phase” is accepted from now on" in page
    assert "30\xa0answers graded again" in page
    assert Counter(current_scores(session, "k-phase")) == {1.0: 22, 0.0: 8}
    assert [row.model_dump() for row in log_of(session, "k-phase")] == [
        row.model_dump() for row in before
    ]
    assert client.post("/authoring/questions/k-phase/acceptance", data=form).status_code == 409


@pytest.mark.parametrize(
    ("item", "answer", "gap", "old", "new"),
    [
        ("k-phase", "decode", "", "- [ ] `decode`\n", "- [x] `decode`\n"),
        ("k-bytes", "2,000 KiB", "", "", "- [x] `2,000 KiB ± 1%`\n"),
        ("k-cloze", "entries", 0, "[[keys|key]]", "[[keys|key|entries]]"),
        ("k-cloze", "data", 1, "[[values|value ?", "[[values|value|data ?"),
    ],
)
def test_what_is_accepted_stands_in_the_file(
    client: TestClient, folder: Path, course: Course, item: str, answer: str, gap, old, new
) -> None:
    question = course.questions[item]
    key = question.answer.blanks[gap].key if gap != "" else ""
    quiz = folder / "topics/kv-cache/quiz.md"
    before = quiz.read_text()
    assert old in before

    form = {"answer": answer, "gap": key, "revision": question.revision}
    sent = client.post(f"/authoring/questions/{item}/acceptance", data=form)

    assert sent.status_code == 303, sent.text
    after = quiz.read_text()
    assert new in after
    assert len(after.splitlines()) - len(before.splitlines()) == (not old)


@pytest.mark.parametrize(
    ("item", "answer"),
    [
        ("k-trade", "Memory"),
        ("k-size", "4 GB"),
        ("k-phase", "a `tick`"),
        ("k-bytes", "many"),
        ("k-cloze", "a]]b"),
        ("k-order", "1"),
    ],
)
def test_what_cannot_be_accepted_changes_nothing(
    client: TestClient, folder: Path, course: Course, item: str, answer: str
) -> None:
    quiz = folder / "topics/kv-cache/quiz.md"
    before = quiz.read_bytes()
    question = course.questions[item]
    gap = getattr(question.answer, "blanks", None)
    form = {
        "answer": answer,
        "gap": gap[0].key if gap else "",
        "revision": question.revision,
    }

    sent = client.post(f"/authoring/questions/{item}/acceptance", data=form)

    assert sent.status_code in {409, 422}
    assert quiz.read_bytes() == before


def test_line_endings_of_the_file_stay(client: TestClient, folder: Path) -> None:
    quiz = folder / "topics/kv-cache/quiz.md"
    quiz.write_bytes(quiz.read_text().replace("\n", "\r\n").encode())
    page = answers_page(client, "k-phase")
    question = LiveCourse(folder).get_current_course().questions["k-phase"]
    assert "Nobody has answered it yet." in page

    form = {"answer": "reading", "revision": question.revision}
    sent = client.post("/authoring/questions/k-phase/acceptance", data=form)

    assert sent.status_code == 303
    assert b"- [x] `reading`\r\n" in quiz.read_bytes()
    assert b"\n" not in quiz.read_bytes().replace(b"\r\n", b"")


def test_answers_are_filtered_by_date_place_and_when_learners_joined(
    session: Session, crowd, course: Course
) -> None:
    question = course.questions["k-stay"]
    early, late = crowd.join(2)
    session.get(Learner, late).created_at = 1000 * 86_400 * 20_000  # 2024-10-04
    raw = json.dumps({"answer": [question.answer.options[0].key]})
    crowd.answer(question, early, 1.0, raw=raw, at=1000 * 86_400 * 20_000, context="exam")
    crowd.answer(question, early, 0.0, raw=raw, first=False)
    crowd.answer(question, late, 0.0, raw=raw, at=1000 * 86_400 * 20_001)
    session.commit()
    day = dt.date(2024, 10, 4)

    def count(**limits: object) -> int:
        return len(list_logged_answers(session, "", "k-stay", AnswerFilter(**limits)))

    assert count() == 2
    assert count(include_repeated=True) == 3
    assert count(answered_since=day, answered_until=day) == 1
    assert count(context="exam") == 1
    assert count(joined_since=day) == 1
    assert count(joined_until=day - dt.timedelta(days=1)) == 1
    assert count(answered_since=day, joined_until=day) == 2


@pytest.mark.parametrize(
    ("policy", "scores"),
    [
        ("key", [1, 0, 0]),
        ("both", [1, 1, 0]),
        ("never-lower", [1, 1, 0]),
        ("drop", [1, 1, 1]),
        ("undo", [1, 0, 0]),
    ],
)
def test_policies_say_which_score_counts(
    client: TestClient, session: Session, crowd, folder: Path, course: Course, policy, scores
) -> None:
    """Three learners answered before the key was corrected: A (right now), B (was right), C."""
    question = course.questions["k-trade"]
    keys = {option.text.plain: option.key for option in question.answer.options}
    order = ("Memory for compute", "Bandwidth for latency", "Accuracy for speed")
    for number, (learner, name) in enumerate(zip(crowd.join(3), order, strict=True)):
        raw = {"answer": [keys[name]]}
        verdict = grade_response(draw_variant(question, 0), raw)
        attempt = NewAttempt(
            question, 0, raw, verdict, submission_token=f"{number}", context="quiz"
        )
        save_attempt_once(session, learner, attempt, NOW.date(), NOW)
    session.commit()
    quiz = folder / "topics/kv-cache/quiz.md"
    text = quiz.read_text().replace("[x] Bandwidth for latency", "[ ] Bandwidth for latency")
    quiz.write_text(text.replace("[ ] Memory for compute", "[x] Memory for compute"))
    at = "/authoring/questions/k-trade/regrading"
    page = client.get(f"{at}?policy={policy}").text
    revision = re.search(r'name="revision" value="(\w+)"', page)
    assert revision

    sent = client.post(at, data={"policy": policy, "revision": revision[1]})

    assert sent.status_code == 303
    assert current_scores(session) == scores
    if policy in {"both", "never-lower", "drop"}:
        client.post(at, data={"policy": "undo", "revision": revision[1]})
        assert current_scores(session) == [1, 0, 0]
