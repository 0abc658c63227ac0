"""GET /authoring/questions: the table, its CSV, what to mend first, the exams."""

import csv
import io
import json
import re

import pytest

from app.database.tables import CardStateRow, Sitting
from tests.amounts import FACTOR


def rows_of(text: str) -> dict[str, dict[str, str]]:
    assert text.startswith("\ufeff")  # or Excel shows its words as others
    return {row["item"]: row for row in csv.DictReader(io.StringIO(text[1:]))}


def test_without_answers_nothing_is_shown(client, course):
    html = client.get("/authoring/questions").text

    assert "Nobody has answered anything yet." in html
    assert f"All, {len(course.questions)}" in html


def test_under_ten_answers_there_is_a_count_and_no_index(client, crowd, course):
    crowd.all_answer(course.questions.values(), crowd.join(9))

    row = rows_of(client.get("/authoring/questions?format=csv").text)["k-trade"]

    assert row["count"] == "9"
    assert (row["facility"], row["discrimination"], row["options"]) == ("", "", "")
    assert "too few answers" in client.get("/authoring/questions?show=all").text


def test_a_discrimination_has_an_interval(client, crowd, course):
    crowd.all_answer(course.questions.values(), crowd.join(30))

    answer = client.get("/authoring/questions?format=csv").text
    row = rows_of(answer)["k-trade"]
    html = client.get("/authoring/questions?show=all").text

    names = ("discrimination_low", "discrimination", "discrimination_high")
    low, mid, high = (float(row[n]) for n in names)
    assert -100 <= low < mid < high <= 100
    assert re.search(rf"{low:.0f} to\s+{high:.0f}</span>".replace("-", "−"), html)


def test_only_first_attempts_count(client, crowd, course):
    question = course.questions["k-trade"]
    for learner in crowd.join(10):
        crowd.answer(question, learner, 1.0, "x")
        crowd.answer(question, learner, 0.0, "x", first=False)
    crowd.session.commit()

    row = rows_of(client.get("/authoring/questions?format=csv").text)["k-trade"]

    assert (row["count"], row["facility"]) == ("10", "100")


def test_answers_of_every_room_count(client, crowd, course):
    question = course.questions["k-trade"]
    rooms = ("exam", "quiz", "practice", "page") * 3
    for learner, room in zip(crowd.join(12), rooms, strict=True):
        crowd.answer(question, learner, 1.0, context=room)
    crowd.session.commit()

    row = rows_of(client.get("/authoring/questions?format=csv").text)["k-trade"]

    assert row["count"] == "12"


def test_an_edited_question_starts_anew(client, crowd, course):
    question = course.questions["k-trade"]
    for learner in crowd.join(10):
        crowd.answer(question, learner, 0.0, revision="before")
    crowd.session.commit()

    row = rows_of(client.get("/authoring/questions?format=csv").text)["k-trade"]

    assert (row["count"], row["answers_before"], row["facility"]) == ("0", "10", "")


def test_the_csv_names_file_line_and_options(client, crowd, course):
    crowd.all_answer(course.questions.values(), crowd.join(20))

    answer = client.get("/authoring/questions?format=csv")
    row = rows_of(answer.text)["k-trade"]

    assert answer.headers["content-type"].startswith("text/csv")
    assert "questions.csv" in answer.headers["content-disposition"]
    assert (row["file"], row["line"]) == ("topics/kv-cache/quiz.md", "7")
    assert re.fullmatch(r"A=\S+ B\*=\S+ C=\S+", row["options"])
    assert float(row["guess"]) == round(100 / 3, 2)


def test_the_table_is_sorted_by_a_link(client, crowd, course):
    crowd.all_answer(course.questions.values(), crowd.join(40))

    def order(sort: str) -> list[float]:
        text = client.get(f"/authoring/questions?format=csv&sort={sort}").text
        return [float(r["facility"]) for r in rows_of(text).values()]

    assert order("facility") == sorted(order("facility"))
    assert order("-facility") == sorted(order("facility"), reverse=True)
    html = client.get("/authoring/questions?show=all&sort=facility").text
    assert 'aria-sort="ascending"' in html
    assert "sort=-facility" in html


def test_an_order_that_is_none_is_that_of_discrimination(client):
    assert client.get("/authoring/questions?sort=color").status_code == 200


def test_a_probable_wrong_key_comes_first_with_file_and_line(client, crowd, course):
    crowd.all_answer(course.questions.values(), crowd.join(60), wrong_key="k-trade")

    html = client.get("/authoring/questions").text
    first = html.split("Fix these first")[1].split("</li>")[0]

    assert "k-trade" in first
    assert "Probably a wrong key: strong learners choose “Accuracy for speed”." in first
    assert "kv-cache/quiz.md:7" in first


def test_a_distractor_nobody_takes_is_named(client, crowd, course):
    crowd.all_answer(course.questions.values(), crowd.join(60))

    assert "Nobody chooses “Bandwidth for latency”." in client.get("/authoring/questions").text


def test_a_card_that_many_forget_is_to_be_mended(client, crowd, session):
    for learner in crowd.join(2):
        session.add(
            CardStateRow(
                learner_id=learner,
                card="w-c-bf16",
                note="w-c-bf16",
                topic="weights",
                state="relearning",
                due_day="2026-06-10",
                due_at=0,
                reviews=20,
                lapses=9,
            )
        )
    session.commit()

    html = client.get("/authoring/questions").text

    assert "2 learners forgot it 8 times or more" in html
    assert "Forgotten in 18 of 40 reviews" in html
    assert "weights/cards.md:" in html


def test_a_mock_exam_has_its_alpha_from_ten_learners_on(client, crowd, course, session):
    questions = list(course.questions.values())[:5]
    paper = json.dumps([[n, q.id, q.revision, 1, "1"] for n, q in enumerate(questions, 1)])
    for skill, learner in enumerate(crowd.join(12)):
        for sitting_of_learner in range(2):
            sitting = Sitting(
                learner_id=learner,
                token=f"s{learner}-{sitting_of_learner}",
                exam="short",
                seed=1,
                paper=paper,
                started_at=sitting_of_learner,
                deadline_at=9,
                closed_at=8,
            )
            session.add(sitting)
            session.flush()
            for place, question in enumerate(questions):
                crowd.answer(
                    question,
                    learner,
                    float(skill / 2 > place),
                    context="exam",
                    first=not sitting_of_learner,
                    sitting_id=sitting.id,
                )
    session.commit()

    exams = client.get("/authoring/questions").text.split('id="exams"')[1]
    cells = re.findall(r'<td class="n">([^<]*)<', exams)
    interval = re.search(r'<span class="micro">(\d+) to (\d+)</span>', exams)

    assert cells[0] == "12"
    assert 60 < float(cells[3]) < 100
    assert interval
    assert int(interval[1]) < float(cells[3]) < int(interval[2])
    sheet = client.get("/authoring/questions?format=exams-csv")
    assert sheet.headers["content-disposition"].endswith('"exams.csv"')
    (row,) = csv.DictReader(io.StringIO(sheet.text[1:]))
    assert round(float(row["alpha"]), 1) == float(cells[3])
    assert float(row["alpha_low"]) < float(row["alpha"]) < float(row["alpha_high"])


def test_under_ten_learners_the_sheet_of_exams_holds_no_index(client):
    (row,) = csv.DictReader(
        io.StringIO(client.get("/authoring/questions?format=exams-csv").text[1:])
    )

    assert (row["exam"], row["learners"]) == ("short", "0")
    assert row["mean"] == row["alpha"] == row["alpha_low"] == row["alpha_high"] == ""


@pytest.mark.drawn
def test_thousands_of_attempts_are_answered(client, crowd, course):
    questions = list(course.questions.values())
    learners = crowd.join(2_000 * FACTOR // len(questions))
    crowd.all_answer(questions, learners)
    for path in ("/authoring/questions?show=all", "/authoring/questions/k-trade"):
        assert client.get(path).status_code == 200, path


def test_a_long_table_goes_on_by_a_link(client, course):
    count = len(course.questions)

    html = client.get(f"/authoring/questions?show=all&start={count - 1}").text

    assert html.split('id="table"')[1].count('<th scope="row">') == 1 + 1  # an exam
    assert client.get("/authoring/questions?start=-1").status_code == 422
