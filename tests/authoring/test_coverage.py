"""What each objective has, and what the choices of a bank give away."""

import dataclasses
import random

import pytest
from fastapi.testclient import TestClient

from app.authoring import course_report
from app.authoring.course_report import (
    compute_coverage,
    count_disjoint_papers_by_title,
    measure_answer_cues,
)
from app.cli import main
from app.content.course import Course
from app.markup.model import RichText
from app.questions.model import Question
from app.questions.option_parsing import Choice
from app.questions.types.choice import ChoiceSpec
from tests.conftest import TINY
from tests.quiz.bank import SINGLE


def bank(longest: bool, size: int = 60) -> list[Question]:
    """Questions whose right option is the longest, or any."""
    chance = random.Random(4)  # noqa: S311 - repeatable
    made = []
    for number in range(size):
        right = chance.randrange(4)
        extra = right if longest else chance.randrange(4)
        options = tuple(
            Choice(str(n), _text("word " * (9 if n == extra else 4 + n % 2)), n == right)
            for n in range(4)
        )
        answer = ChoiceSpec("single", options)
        made.append(dataclasses.replace(SINGLE, id=f"q{number}", answer=answer))
    return made


def _text(words: str) -> RichText:
    return RichText(words, words)


def test_a_bank_whose_longest_option_is_right_tells_it() -> None:
    found = {cue.cue_description: cue for cue in measure_answer_cues(bank(longest=True))}

    assert found["the longest"].right_share == 1.0
    assert found["the longest"].is_significant
    assert found["the longest"].chance_share == 0.25


def test_a_bank_without_a_cue_tells_nothing() -> None:
    found = {cue.cue_description: cue for cue in measure_answer_cues(bank(longest=False))}

    assert not found["the longest"].is_significant


def test_a_bank_without_choices_has_no_cues() -> None:
    assert measure_answer_cues([]) == ()


def test_every_objective_is_counted(course: Course) -> None:
    rows = {row.number: row for row in compute_coverage(course)}

    for domain in course.syllabus.domains:
        for objective in domain.objectives:
            row = rows[objective.number]
            named = [q for q in course.questions.values() if objective.number in q.objectives]
            assert row.questions == len(named) == sum(row.questions_by_type.values())
            assert row.computed_questions == sum(q.computed is not None for q in named)


@pytest.mark.parametrize(
    ("html", "count"),
    [
        ('<figure class="x"><img src="a"></figure><p><img src="b"></p>', 2),
        ("<figure><svg></svg></figure>", 1),
        ('<p><img src="a"><img src="b"></p>', 2),
        ("<p>figure</p>", 0),
    ],
)
def test_pictures_are_figures_and_images_outside_of_them(html: str, count: int) -> None:
    assert course_report._count_pictures(html) == count


def test_publishers_of_one_number_stand_by_name(course: Course) -> None:
    for row in compute_coverage(course):
        said = list(row.sources_by_publisher.items())
        assert said == sorted(said, key=lambda one: (-one[1], one[0]))


def test_papers_without_a_repeat_are_counted(course: Course) -> None:
    assert set(count_disjoint_papers_by_title(course)) == {e.title for e in course.exams.values()}


def test_the_command_prints_each_objective(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["coverage", str(TINY)]) == 0

    said = capsys.readouterr().out
    assert "  questions: " in said
    assert "papers without a repeat" in said
    assert "by chance" in said


def test_the_bench_shows_the_same(client: TestClient, course: Course) -> None:
    html = client.get("/authoring/coverage").text

    for row in compute_coverage(course):
        assert f"{row.number} {row.name}" in html
    assert "the longest" in html
