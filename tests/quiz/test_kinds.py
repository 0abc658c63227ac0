"""Every kind of question has all that the house asks of it."""

from pathlib import Path

import pytest

from app.content.parse_cache import decode_cached_value, encode_value_for_cache
from app.import_export.course_markdown import read_items_of_course_file
from app.questions import types as kinds
from app.questions.grading import grade_response
from app.questions.question_type import GradeResult
from app.quiz.forms import parse_submission_fields
from tests.quiz.bank import EVERY_TYPE, drawn, with_rule
from tests.quiz.test_labs import LAB
from tests.quiz.test_place import PLACE

ROOT = Path(__file__).resolve().parents[2]
ASKED = {**EVERY_TYPE, "place": PLACE, "console": LAB}


def test_every_kind_is_walked_here() -> None:
    assert set(ASKED) == set(kinds.QUESTION_TYPES)


def test_it_has_a_module_and_a_template(subtests: pytest.Subtests) -> None:
    for name in kinds.QUESTION_TYPES:
        with subtests.test(name=name):
            kind = kinds.QUESTION_TYPES[name]
            assert type(kind).__module__.startswith("app.questions.types.")
            assert kind.template == f"questions/{name}.html"
            template = (ROOT / "templates" / kind.template).read_text()
            assert "{% macro form(open_question)" in template
            assert "{% macro feedback(outcome)" in template


def test_the_registry_finds_it_by_a_question(subtests: pytest.Subtests) -> None:
    for name in kinds.QUESTION_TYPES:
        with subtests.test(name=name):
            assert kinds.question_type_of(ASKED[name]) is kinds.QUESTION_TYPES[name]
            assert kinds.question_type_of(ASKED[name]).name == name


def test_what_its_form_sends_is_taken_for_an_answer(subtests: pytest.Subtests) -> None:
    for name in kinds.QUESTION_TYPES:
        with subtests.test(name=name):
            sent = [
                (f"{f}x" if f.endswith(".") else f, "1")
                for f in kinds.QUESTION_TYPES[name].form_fields
            ]

            assert set(parse_submission_fields(sent).raw_response) == {field for field, _ in sent}


def test_a_part_of_the_points_says_where_it_comes_from(subtests: pytest.Subtests) -> None:
    for name, kind in kinds.QUESTION_TYPES.items():
        for rule in kind.credit_rules[1:] if kind.supports_partial_credit else ():
            with subtests.test(name=name, rule=rule):
                asked = drawn(with_rule(ASKED[name], rule))
                results = [
                    grade_response(asked, raw) for _, raw in kind.sample_responses(asked.answer)
                ]
                part = [r for r in results if isinstance(r, GradeResult) and 0 < r.score < 1]
                assert all(result.score_basis for result in part)


def test_its_states_are_answers_of_its_form(subtests: pytest.Subtests) -> None:
    for name in kinds.QUESTION_TYPES:
        with subtests.test(name=name):
            question = ASKED[name]
            kind = kinds.question_type_of(question)
            states = list(kind.sample_responses(question.answer))

            assert states
            for _, raw in states:
                assert all(field.startswith(kind.form_fields) for field in raw)


def test_the_cache_keeps_it(subtests: pytest.Subtests) -> None:
    for name in kinds.QUESTION_TYPES:
        with subtests.test(name=name):
            assert decode_cached_value(encode_value_for_cache(ASKED[name])) == ASKED[name]


def test_every_type_of_a_comment_is_a_kind_or_refused_by_name() -> None:
    text = "### A?\n<!-- q: a\ntype: riddle\n-->\n\n- [x] B\n"

    assert [str(r) for r in read_items_of_course_file(text, "topics/t/quiz.md").refused_items] == [
        "topics/t/quiz.md:1: a: the check refuses it"
    ]
