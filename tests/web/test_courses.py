"""Several courses on one server: each has its addresses, its learners and its bench."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlmodel import Session, col, select

from app.authoring import store as bench
from app.content.live_courses import find_course_folders
from app.database.tables import Attempt, CalendarFeed, Learner, LearnerSession, Sitting
from app.main import create_app
from app.settings import Settings
from tests.conftest import TINY, Clock, two_courses, visit

AID, SIZING = "/courses/aid", "/courses/sizing"


@pytest.fixture
def school(settings: Settings, clock: Clock, tmp_path: Path) -> Iterator[FastAPI]:
    """A server with two courses."""
    content = two_courses(tmp_path / "content")
    app = create_app(settings.model_copy(update={"content": content}), clock)
    yield app
    app.state.engine.dispose()


@pytest.fixture
def rosa(school: FastAPI) -> Iterator[TestClient]:
    with visit(school) as client:
        yield client


def test_a_folder_is_a_course_or_holds_courses(tmp_path: Path) -> None:
    assert find_course_folders(TINY) == {"": TINY}
    for name in ("b", "a", "Not a name"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "syllabus.toml").touch()
    (tmp_path / "notes").mkdir()

    assert find_course_folders(tmp_path) == {"a": tmp_path / "a", "b": tmp_path / "b"}
    assert find_course_folders(tmp_path / "notes") == {"": tmp_path / "notes"}


def test_the_first_visit_chooses(rosa: TestClient) -> None:
    first = rosa.get("/")
    assert (first.status_code, first.headers["location"]) == (307, "/courses")

    page = rosa.get("/courses").text

    assert "Erste Hilfe am Unfallort" in page
    assert "outbox.js" not in page  # its worker belongs to a course
    assert 'href="/courses/sizing/"' in page


def test_every_address_of_a_page_stays_in_its_course(rosa: TestClient) -> None:
    for course_name, own in ((AID, "Wiederbelebung"), (SIZING, "Weights in memory")):
        page = rosa.get(f"{course_name}/course").text
        assert own in page
        assert f'href="{course_name}/flashcards"' in page
        assert f'href="{course_name}/static/css/headroom.css' in page
        assert rosa.get(f"{course_name}/static/js/headroom.js").status_code == 200
        assert f'href="{course_name}/courses"' in page
    out = rosa.get(f"{AID}/courses")
    assert (out.status_code, out.headers["location"]) == (303, "../../courses")


def test_keys_know_what_a_course_goes_without(rosa: TestClient) -> None:
    assert '<body data-without="calculators">' in rosa.get(f"{AID}/course").text
    assert "data-without" not in rosa.get(f"{SIZING}/course").text
    keys = rosa.get(f"{AID}/static/js/headroom.js").text
    assert "dataset.without" in keys
    assert 'k: "calculators"' in keys


def test_an_address_without_a_course_leads_to_the_last_one(rosa: TestClient) -> None:
    assert rosa.get("/glossary").headers["location"] == "/courses"
    rosa.get(f"{SIZING}/")

    there = rosa.get("/glossary?a=1")

    assert there.headers["location"] == "/courses/sizing/glossary?a=1"
    rosa.get(f"{AID}/sw.js", headers={"sec-fetch-mode": "same-origin"})
    assert rosa.get("/").headers["location"] == "/courses/sizing/"
    assert rosa.get("/courses/aid").headers["location"] == "/courses/aid/"
    assert rosa.get("/courses/none/quiz").status_code == 404


def test_the_worker_of_a_course_that_was_alone_goes(rosa: TestClient) -> None:
    old = rosa.get("/sw.js", headers={"sec-fetch-mode": "same-origin"})

    assert old.status_code == 200  # a browser refuses a worker that was redirected
    assert old.headers["content-type"].startswith("text/javascript")
    assert "registration.unregister()" in old.text
    assert '"fetch"' not in old.text
    assert "unregister" not in rosa.get(f"{SIZING}/sw.js").text
    assert rosa.head("/sw.js").status_code == 200


def test_a_link_for_a_person_works_before_they_chose(rosa: TestClient) -> None:
    there = rosa.get("/continue?code=abc")

    assert there.headers["location"] == "/courses/aid/continue?code=abc"


def test_cookies_are_those_of_the_whole_server(rosa: TestClient) -> None:
    answered = rosa.get(f"{AID}/")

    lines = answered.headers.get_list("set-cookie")
    assert len(lines) == 2
    assert all("Path=/;" in line for line in lines)


def test_work_belongs_to_its_course_though_ids_are_the_same(
    rosa: TestClient, school: FastAPI
) -> None:
    rosa.post(f"{SIZING}/settings", data={"name": "Rosa", "exam_day": "2026-07-01"})
    flag = f"{AID}/quiz/reanimation/w-fp32/flag"
    assert rosa.post(flag, data={"wanted": "yes"}).status_code == 303
    rosa.post(f"{AID}/settings", data={"name": "Rosa M.", "minutes_a_day": "50"})

    with Session(school.state.engine) as db:
        rows = db.exec(select(Learner).order_by(col(Learner.id))).all()
        assert [(r.course, r.name) for r in rows] == [
            ("sizing", "Rosa M."),
            ("aid", "Rosa M."),
        ]
        assert len({r.person for r in rows}) == 1
        assert [r.exam_day for r in rows] == ["2026-07-01", None]
        assert len(db.exec(select(LearnerSession)).all()) == 1


def test_statistics_and_papers_are_those_of_one_course(
    school: FastAPI,
) -> None:
    with Session(school.state.engine) as db:
        for course_name, score in (("aid", 1.0), ("sizing", 0.0)):
            who = Learner(key=course_name, course=course_name, created_at=1)
            db.add(who)
            db.flush()
            assert who.id
            db.add(an_attempt(who.id, score))
            db.add(a_sitting(who.id))
        db.commit()

        for course_name, score in (("aid", 1.0), ("sizing", 0.0)):
            (only,) = bench.load_first_attempts(db, course_name)
            assert (only.question_id, only.score) == ("w-fp32", score)
            assert len(bench.load_first_finished_sittings(db, course_name)) == 1
        assert bench.load_first_attempts(db, "") == []


def test_each_course_is_checked_and_counted(rosa: TestClient) -> None:
    said = rosa.get("/readyz").text

    assert "content aid: ok, 2 topics" in said
    assert "content sizing: ok, 2 topics" in said
    assert rosa.get(f"{AID}/healthz").text == "well"


def test_kept_pages_of_two_courses_do_not_meet(rosa: TestClient) -> None:
    for _ in range(2):
        assert "Druckverband" in rosa.get(f"{AID}/glossary").text
        assert "KV cache" in rosa.get(f"{SIZING}/glossary").text


def test_a_calendar_of_before_leads_to_its_course(rosa: TestClient, school: FastAPI) -> None:
    rosa.post(f"{SIZING}/plan/calendar", data={"wish": "new"})
    with Session(school.state.engine) as db:
        key = db.exec(select(CalendarFeed.key)).one()

    with visit(school) as program:
        old = program.get(f"/calendar/{key}.ics")
        assert old.headers["location"] == f"{AID}/calendar/{key}.ics"
        there = program.get(old.headers["location"])
        assert there.headers["location"] == f"../../sizing/calendar/{key}.ics"
        found = program.get(f"{SIZING}/calendar/{key}.ics")
        assert found.text.startswith("BEGIN:VCALENDAR")


def test_a_course_may_do_without_calculators(rosa: TestClient) -> None:
    for address in ("/calculators", "/calculators/kv-cache", "/hardware"):
        assert rosa.get(f"{AID}{address}").status_code == 404
        assert rosa.get(f"{SIZING}{address}").status_code == 200
    assert "/calculators" not in rosa.get(f"{AID}/").text
    assert "/hardware" not in rosa.get(f"{AID}/search?q=memory").text
    assert f'href="{SIZING}/hardware"' in rosa.get(f"{SIZING}/").text


def test_one_course_alone_has_the_addresses_it_had(client: TestClient) -> None:
    assert client.get("/courses").status_code == 404
    assert 'href="/courses"' not in client.get("/").text


def an_attempt(learner: int, score: float) -> Attempt:
    return Attempt(
        learner_id=learner,
        token=f"t{learner}",
        item="w-fp32",
        revision="r",
        topic="t",
        seed=1,
        context="quiz",
        raw="{}",
        parsed="{}",
        score=score,
        first=True,
        study_day="2026-01-01",
        at=1,
    )


def a_sitting(learner: int) -> Sitting:
    return Sitting(
        learner_id=learner,
        token=f"s{learner}",
        exam="short",
        seed=1,
        paper="[]",
        started_at=1,
        deadline_at=2,
        closed_at=2,
        closed_by="time",
    )


def test_programs_are_told_every_course_under_its_name(rosa: TestClient) -> None:
    for base in ("", AID):
        told = rosa.get(f"{base}/api/v1/courses").json()["courses"]
        assert [course["course"] for course in told] == ["aid", "sizing"]
    aid = rosa.get("/api/v1/courses/aid").json()
    sizing = rosa.get("/api/v1/courses/sizing/glossary")

    assert aid["title"] == told[0]["title"] != told[1]["title"]
    assert sizing.json()["version"] == told[1]["version"] != aid["version"]
    assert rosa.get("/api/v1/courses/nowhere").status_code == 404
