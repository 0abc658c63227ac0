"""Commands on a server with several courses: which one is meant."""

import csv
import datetime as dt
import json
import re
import shutil
from pathlib import Path

import pytest
from sqlmodel import Session, col, select

from app.cli import main
from app.content.course import load_course
from app.content.live_courses import CourseRegistry, LiveCourse
from app.database.engine import WRITE_OPTIONS, make_engine
from app.database.tables import Attempt, Learner, Regrade
from app.quiz.store import save_revision_once
from tests.conftest import FIRST_AID, two_courses


@pytest.fixture
def content(tmp_path: Path, database: str, monkeypatch) -> Path:
    """Two courses beside each other, and a database."""
    folder = two_courses(tmp_path / "content")
    monkeypatch.setenv("HEADROOM_CONTENT", str(folder))
    monkeypatch.setenv("HEADROOM_DATABASE_URL", database)
    monkeypatch.setenv("HEADROOM_DATA", str(tmp_path))
    monkeypatch.setenv("HEADROOM_SECRET", "s" * 32)
    return folder


@pytest.mark.parametrize(
    "words",
    [
        ["check"],
        ["coverage"],
        ["new", "topic", "verband", "--title", "Verband"],
        ["export", "gift", "-"],
    ],
    ids=lambda words: words[0],
)
def test_a_command_without_a_course_names_those_there_are(
    content: Path, capsys, words: list[str]
) -> None:
    assert content
    assert main(words) == 2

    said = capsys.readouterr().err
    assert "there are several courses; name one with --course: aid, sizing." in said
    assert said.count("\n") == 1


def test_a_course_is_named_and_another_refused(content: Path, capsys) -> None:
    assert main(["check", "--course", "aid"]) == 0
    assert main(["coverage", "--course", "aid"]) == 0
    assert "Herzdruckmassage" in capsys.readouterr().out
    assert main(["new", "topic", "x", "--title", "X", "--course=sizing"]) == 0
    assert "at /courses/sizing/authoring/pages/x\n" in capsys.readouterr().out
    assert (content / "sizing" / "topics" / "x" / "quiz.md").is_file()
    assert main(["export", "gift", "-", "--course", "non"]) == 2
    assert "there is no course “non”" in capsys.readouterr().err
    assert main(["check", str(content / "aid"), "--course", "aid"]) == 2


def test_a_folder_of_courses_is_checked_course_by_course(content: Path, capsys) -> None:
    assert main(["check", str(content)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("aid:\naid/topics/blutung/concept.md:1:1 W87 ")
    assert "\nsizing:" in said
    assert said.count("0 errors, ") == 2 - said.count("No problems.")

    (content / "aid" / "topics" / "blutung" / "concept.md").unlink()

    assert main(["check", str(content)]) == 1
    said = capsys.readouterr().out
    assert said.startswith("aid:\naid/")
    assert said.endswith("\nsizing: No problems.\n")
    assert main(["check", str(content), "--format", "json"]) == 1
    assert all(p["path"].startswith("aid/") for p in json.loads(capsys.readouterr().out))
    assert main(["check", str(content), "--watch"]) == 2
    assert "name one of aid, sizing" in capsys.readouterr().err


def test_a_new_course_passes_the_check(content: Path, capsys) -> None:
    words = ["new", "course", "verband", "--title", "Verbände", "--exam", "V1"]
    assert main(words) == 0
    assert "at /courses/verband/" in capsys.readouterr().out

    assert main(["check", "--course", "verband"]) == 0
    assert re.findall(r"[EW]\d\d", capsys.readouterr().out) == ["W73"]
    assert main(words) == 2
    assert "is there already" in capsys.readouterr().err
    assert main([*words, "--dir", str(content / "aid")]) == 2
    assert "has a single course" in capsys.readouterr().err


def test_a_course_alone_has_no_name(content: Path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("HEADROOM_CONTENT", str(content / "aid"))

    assert main(["check"]) == 0
    assert main(["check", "--course", "aid"]) == 2
    assert "has a single course" in capsys.readouterr().err


def test_attempts_are_those_of_the_course(content: Path, database: str, tmp_path: Path) -> None:
    assert content
    engine = make_engine(database)
    with Session(engine) as db:
        for course_name in ("aid", "sizing"):
            who = Learner(key=course_name, course=course_name, created_at=1)
            db.add(who)
            db.flush()
            db.add(an_attempt(who.id or 0, course_name))
        db.commit()
    engine.dispose()
    file = tmp_path / "attempts.csv"

    assert main(["export", "attempts-csv", str(file), "--course", "aid"]) == 0

    with file.open(encoding="utf-8-sig", newline="") as lines:
        assert [row["item"] for row in csv.DictReader(lines)] == ["aid"]


def test_only_the_answers_of_a_course_are_graded_again(
    content: Path, database: str, capsys
) -> None:
    question = load_course(content / "aid").questions["w-fp32"]
    engine = make_engine(database)
    with Session(engine) as db:
        db.connection(execution_options=WRITE_OPTIONS)
        save_revision_once(db, question, dt.datetime(2026, 6, 9, tzinfo=dt.UTC))
        for course_name in ("aid", "sizing"):
            who = Learner(key=course_name, course=course_name, created_at=1)
            db.add(who)
            db.flush()
            given = an_attempt(who.id or 0, question.id)
            given.token, given.score = course_name, 0.0
            given.revision, given.raw = question.revision, '{"answer": ["15"]}'
            db.add(given)
        db.commit()
    file = content / question.place.path.replace("topics", "aid/topics")
    text = file.read_text().replace("- [x] `30`", "- [ ] `30`")
    file.write_text(text.replace("- [ ] `15`", "- [x] `15`"))

    assert main(["regrade", "w-fp32", "--yes"]) == 2
    assert "there are several courses" in capsys.readouterr().err
    assert main(["regrade", "w-fp32", "--course", "aid", "--yes"]) == 0

    with Session(engine) as db:
        (row,) = db.exec(select(Regrade)).all()
        who = db.get(Learner, row.learner_id)
        assert who is not None
        assert (who.course, row.score) == ("aid", 1.0)
    engine.dispose()


def test_what_was_done_before_is_given_to_one_course(content: Path, database: str, capsys) -> None:
    assert content
    engine = make_engine(database)
    with Session(engine) as db:
        db.add(Learner(key="rosa", person="rosa", created_at=1))
        db.add(Learner(key="milo", person="milo", created_at=1))
        db.add(Learner(key="new", person="milo", course="aid", created_at=1))
        db.commit()

    assert main(["learners", "adopt", "none"]) == 1
    assert "there is no course “none”; there is aid, sizing." in capsys.readouterr().err
    assert main(["learners", "adopt", "aid"]) == 0

    assert "aid has the work of 1 learners." in capsys.readouterr().out
    with Session(engine) as db:
        rows = db.exec(select(Learner).order_by(col(Learner.id))).all()
        assert [(r.key, r.course) for r in rows] == [
            ("rosa", "aid"),
            ("milo", ""),
            ("new", "aid"),
        ]
    engine.dispose()


def an_attempt(learner: int, name: str) -> Attempt:
    return Attempt(
        learner_id=learner,
        token=name,
        item=name,
        revision="r",
        topic="t",
        seed=1,
        context="quiz",
        raw="{}",
        parsed="{}",
        score=1.0,
        first=True,
        study_day="2026-01-01",
        at=1,
    )


def test_a_question_of_another_course_is_found_there(content: Path, capsys) -> None:
    assert content
    assert main(["regrade", "b-druck", "--course", "sizing"]) == 2

    said = capsys.readouterr().err
    assert "no question “b-druck” in the course “sizing”; there is one in aid" in said


def test_a_topic_that_is_not_there_is_missed_in_its_course(content: Path, capsys) -> None:
    assert content
    words = ["--topic", "gpu", "--course", "aid"]
    assert main(["new", "question", "--type", "short", *words]) == 2
    assert "There is no topic “gpu” in aid." in capsys.readouterr().err
    assert main(["export", "gift", "-", *words]) == 2
    assert "There is no topic “gpu” in aid." in capsys.readouterr().err


def test_a_folder_that_is_no_course_is_named_by_the_check(content: Path, capsys) -> None:
    (content / "draft" / "topics").mkdir(parents=True)
    (content / "pictures").mkdir()
    shutil.copytree(FIRST_AID, content / "First Aid")

    assert main(["check", str(content)]) == 1

    said = capsys.readouterr().out
    assert "draft/syllabus.toml:1:1 E00 The folder “draft” is no course" in said
    assert "The folder “First Aid” is no course of the server: its name makes" in said
    assert "pictures" not in said
    assert said.endswith("2 errors, 0 warnings.\n")


def test_a_server_says_which_folder_is_no_course(content: Path, caplog) -> None:
    (content / "draft").mkdir()
    (content / "draft" / "sources.toml").write_text("", encoding="utf-8")

    found = CourseRegistry.from_content_folder(content, LiveCourse)

    assert set(found.live_courses) == {"aid", "sizing"}
    assert "draft: this folder is not served as a course: it has no" in caplog.text


def test_a_failure_of_headroom_is_told_once_and_its_way_only_when_asked(
    content: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("of our own")

    monkeypatch.setattr("app.content.file_reader._parse_by_file_type", broken)

    assert main(["check", str(content)]) == 1
    quiet = list(caplog.records)
    assert main(["check", str(content), "--verbose"]) == 1

    assert not [r for r in quiet if r.exc_info]
    assert [r for r in caplog.records if r.exc_info]


def test_a_course_is_begun_where_the_author_stands(content: Path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("HEADROOM_CONTENT", str(content / "aid"))
    monkeypatch.chdir(content)

    assert main(["new", "course", "first-aid"]) == 0
    assert "`headroom serve first-aid`" in capsys.readouterr().out
    assert 'title = "First aid"' in (content / "first-aid" / "syllabus.toml").read_text()
    assert main(["new", "course", str(content / "by-path")]) == 0
    assert (content / "by-path" / "syllabus.toml").is_file()
    assert main(["serve", str(content.parent)]) == 2
    assert "holds no course" in capsys.readouterr().err


def test_without_a_setting_the_course_in_the_current_folder_is_meant(
    content: Path, capsys, monkeypatch
) -> None:
    monkeypatch.delenv("HEADROOM_CONTENT")
    monkeypatch.chdir(content / "aid")
    quiz = next(Path("topics").glob("*/quiz.md"))
    topic = quiz.parent.name
    quiz.write_text(quiz.read_text() + "\n### Is it here?\n\n- [x] True\n- [ ] False\n  > No.\n")

    assert main(["check"]) == 1
    assert f"{quiz}:" in capsys.readouterr().out
    assert main(["check", "--fix"]) == 0
    assert "<!-- q: is-it-here -->" in quiz.read_text()
    assert main(["new", "question", "--topic", topic, "--type", "short"]) == 0
    assert "type: short" in quiz.read_text()
    assert main(["regrade", "is-it-here"]) == 0
