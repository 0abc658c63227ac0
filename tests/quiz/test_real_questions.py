"""Every question of the tiny course and of the shipped one, answered as authored."""

import json
from collections import defaultdict

import pytest

from app.content.course import Course, load_course
from app.questions.grading import grade_response
from app.questions.lab_session import find_shortest_solution
from app.questions.model import Question, Variant, draw_variant
from app.questions.question_type import GradeResult, UnreadableResponse
from app.questions.types import Answer
from app.questions.types.choice import ChoiceSpec
from app.questions.types.cloze import ClozeSpec
from app.questions.types.design import DesignSpec
from app.questions.types.lab import LabSpec
from app.questions.types.matching import MatchSpec
from app.questions.types.number_parsing import NumericSpec
from app.questions.types.ordering import OrderSpec
from app.questions.types.place import PlaceSpec
from app.questions.types.short_answer import ShortAnswerSpec
from app.quiz.store import QUESTION
from tests.amounts import FACTOR
from tests.conftest import SCRIPTS, TINY

SEEDS = (0, 1, 7, 12345)


@pytest.fixture(scope="module", params=["tiny", "shipped", *SCRIPTS])
def real_course(request: pytest.FixtureRequest, shipped: Course) -> Course:
    return shipped if request.param == "shipped" else load_course(TINY.parent / request.param)


def right_answer(variant: Variant) -> dict[str, list[str]]:
    """What somebody who knows everything would send."""
    answer = variant.answer
    if isinstance(answer, ChoiceSpec):
        return {"answer": [o.key for o in answer.options if o.right]}
    if isinstance(answer, NumericSpec):
        right = next(o for o in answer.options if o.right)
        return {"answer": [right.template.split("±")[0].split(" sig ")[0]]}
    if isinstance(answer, ShortAnswerSpec):
        return {"answer": [next(o.answer for o in answer.options if o.right)]}
    if isinstance(answer, OrderSpec):
        return {f"place.{s.key}": [str(n)] for n, s in enumerate(answer.steps, 1)}
    return right_row(answer)


def right_row(answer: Answer) -> dict[str, list[str]]:
    if isinstance(answer, MatchSpec):
        return {f"pair.{p.key}": [p.answer] for p in answer.pairs if p.left.html}
    if isinstance(answer, PlaceSpec):
        return {"answer": [r.key for r in answer.regions if r.right]}
    if isinstance(answer, LabSpec):
        way = [
            answer.lab.commands[number].sample_line_without_prompt
            for number in find_shortest_solution(answer.lab) or ()
        ]
        return {"ran": way, "answer": [o.key for o in answer.diagnoses if o.right]}
    assert isinstance(answer, ClozeSpec)
    return {f"blank.{b.key}": [b.answers[0]] for b in answer.blanks}


def variants(real_course: Course) -> list[Variant]:
    return [
        draw_variant(question, seed)
        for question in real_course.questions.values()
        if not isinstance(question.answer, DesignSpec)
        for seed in (SEEDS if question.computed else SEEDS[:2])
    ]


def test_the_authored_answer_is_right(real_course: Course) -> None:
    wrong = []
    for variant in variants(real_course):
        verdict = grade_response(variant, right_answer(variant))
        if isinstance(verdict, UnreadableResponse) or verdict.score < 1:
            wrong.append((variant.question.id, variant.seed, verdict))
    assert wrong == []


def test_a_foreseen_mistake_is_wrong_and_answered(real_course: Course) -> None:
    silent = []
    for variant in variants(real_course):
        if not isinstance(variant.answer, NumericSpec):
            continue
        for option in (o for o in variant.answer.options if not o.right):
            raw = {"answer": [option.template.split("±")[0]]}
            verdict = grade_response(variant, raw)
            if not isinstance(verdict, GradeResult) or verdict.score > 0:
                silent.append((variant.question.id, variant.seed, option.template))
    assert silent == []


@pytest.mark.drawn
def test_a_wording_comes_back_from_the_database_as_it_was(real_course: Course) -> None:
    """Of each type three questions; `make drills`: all."""
    of_type: dict[type[Answer], list[Question]] = defaultdict(list)
    for question in real_course.questions.values():
        of_type[type(question.answer)].append(question)
    most = 3 if FACTOR == 1 else None
    for question in (question for many in of_type.values() for question in many[:most]):
        kept = QUESTION.dump_json(question).decode()
        again: Question = QUESTION.validate_json(kept)
        assert json.loads(QUESTION.dump_json(again)) == json.loads(kept)
        assert type(again.answer) is type(question.answer)
        for seed in SEEDS[:2]:
            if not isinstance(question.answer, DesignSpec):
                raw = right_answer(draw_variant(question, seed))
                assert grade_response(draw_variant(again, seed), raw) == grade_response(
                    draw_variant(question, seed), raw
                )


def test_the_shipped_questions_of_a_kind_give_partial_credit_by_one_rule(shipped: Course) -> None:
    """So that one right of “choose two” is worth the same everywhere."""
    rules = defaultdict(set)
    for question in shipped.questions.values():
        rules[question.type].add(question.partial)

    assert {kind: found for kind, found in rules.items() if len(found) > 1} == {}
