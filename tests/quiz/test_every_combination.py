"""Every combination of every computed question of the shipped course: none sampled."""

import itertools
import math
import re

import pytest

from app.content.course import Course
from app.questions.grading import grade_response
from app.questions.model import Question, Variant, count_combinations, draw_variant
from app.questions.question_type import GradeResult
from app.questions.types.number_parsing import NumericOption, NumericSpec


@pytest.fixture(scope="module")
def computed(shipped: Course) -> list[Question]:
    """The computed questions that ask for a number; labs only draw names."""
    return [q for q in shipped.questions.values() if q.computed and q.type == "numeric"]


@pytest.fixture(scope="module")
def every_variant(computed: list[Question]) -> list[Variant]:
    return [
        draw_variant(question, index)
        for question in computed
        if question.computed
        for index in range(count_combinations(question.computed))
    ]


def options(variant: Variant) -> tuple[NumericOption, ...]:
    assert isinstance(variant.answer, NumericSpec), "only numbers are computed so far"
    return variant.answer.options


def written(option: NumericOption) -> str:
    return option.template.split("±")[0].split(" sig ")[0].strip()


def name(variant: Variant) -> tuple[str, dict[str, object]]:
    return variant.question.id, dict(variant.parameter_values)


def test_the_course_computes_hundreds_of_variants(
    computed: list[Question], every_variant: list[Variant]
) -> None:
    assert len(computed) > 50
    assert len(every_variant) > 500


def test_every_combination_differs_from_every_other(
    every_variant: list[Variant],
) -> None:
    drawn = {(v.question.id, *map(str, v.parameter_values.values())) for v in every_variant}

    assert len(drawn) == len(every_variant)


def test_every_answer_and_distractor_is_finite_and_its_range_holds_it(
    every_variant: list[Variant],
) -> None:
    bad = [
        (name(variant), option.template)
        for variant in every_variant
        for option in options(variant)
        if option.range is None
        or not all(
            map(
                math.isfinite,
                (option.range.low, option.range.center, option.range.high),
            )
        )
        or not option.range.low <= option.range.center <= option.range.high
    ]

    assert bad == []


def test_no_two_answers_read_the_same_or_lie_within_one_another(
    every_variant: list[Variant],
) -> None:
    same = []
    for variant in every_variant:
        for one, other in itertools.permutations(options(variant), 2):
            assert one.range is not None
            assert other.range is not None
            within = other.range.low <= one.range.center <= other.range.high
            if within or written(one) == written(other):
                same.append((name(variant), one.template, other.template))

    assert same == []


def test_no_name_is_left_unfilled_and_no_number_is_none(
    every_variant: list[Variant],
) -> None:
    unfilled = []
    for variant in every_variant:
        asked = variant.question.computed
        assert asked
        names = "|".join(
            (*asked.possible_values_by_name, *(name for name, _ in asked.named_expressions))
        )
        gap = re.compile(rf"\{{({names})[:}}]|\b(nan|inf)\b")
        texts = (variant.stem, variant.explanation, variant.mistake, *variant.hints)
        texts += tuple(o.feedback for o in options(variant))
        unfilled += [(name(variant), t.plain) for t in texts if gap.search(t.plain)]

    assert unfilled == []


def test_what_is_authored_is_right_and_each_mistake_gets_its_own_words(
    every_variant: list[Variant],
) -> None:
    wrong = []
    for variant in every_variant:
        for option in options(variant):
            verdict = grade_response(variant, {"answer": [written(option)]})
            if (
                not isinstance(verdict, GradeResult)
                or verdict.score != float(option.right)
                or verdict.parsed_response["option"] != option.key
                or verdict.feedback != option.feedback
            ):
                wrong.append((name(variant), option.template))

    assert wrong == []
