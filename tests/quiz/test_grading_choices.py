"""Options: single, multiple with its four rules, true or false."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.questions import types
from app.questions.grading import grade_response
from app.questions.question_type import GradeResult, UnreadableResponse
from app.questions.types.choice import compute_choice_credit
from tests.quiz.bank import MULTIPLE, SINGLE, TRUE_FALSE, drawn, with_rule


def test_the_right_option_is_right() -> None:
    verdict = grade_response(drawn(SINGLE), {"answer": ["ghjk"]})

    assert isinstance(verdict, GradeResult)
    assert (verdict.score, verdict.result, verdict.given_answer) == (1.0, "right", "B")
    assert verdict.parsed_response == {"chosen": ["ghjk"]}


def test_an_option_that_is_nearly_right_brings_its_part_of_the_mark() -> None:
    answer = SINGLE.answer
    nearly = dataclasses.replace(answer.options[0], credit=0.5)
    asked = dataclasses.replace(
        SINGLE,
        answer=dataclasses.replace(answer, options=(nearly, *answer.options[1:])),
    )

    verdicts = [grade_response(drawn(asked), {"answer": [o.key]}) for o in answer.options]

    assert [(v.score, v.result) for v in verdicts if isinstance(v, GradeResult)] == [
        (0.5, "partly"),
        (1.0, "right"),
        (0.0, "wrong"),
    ]
    assert types.question_type_of(asked).compute_guess_score(asked.answer, asked.partial) == 0.5


def test_a_wrong_option_brings_its_own_feedback_and_names_the_right_one() -> None:
    verdict = grade_response(drawn(SINGLE), {"answer": ["bcdf"]})

    assert isinstance(verdict, GradeResult)
    assert (verdict.score, verdict.result) == (0.0, "wrong")
    assert verdict.part_results[0].chosen
    assert verdict.part_results[0].feedback.plain == "Why bcdf"
    assert verdict.right_answer == "B"


@pytest.mark.parametrize("raw", [{}, {"answer": []}, {"answer": ["nope"]}])
def test_no_choice_is_refused_and_not_wrong(raw: dict[str, list[str]]) -> None:
    assert isinstance(grade_response(drawn(SINGLE), raw), UnreadableResponse)
    assert isinstance(grade_response(drawn(MULTIPLE), raw), UnreadableResponse)


def test_two_answers_to_a_single_choice_are_refused() -> None:
    verdict = grade_response(drawn(TRUE_FALSE), {"answer": ["bcdf", "ghjk"]})

    assert verdict == UnreadableResponse("Choose one answer only.", "Nothing was counted.")


@pytest.mark.parametrize(
    ("rule", "one_right", "right_and_wrong", "all_boxes"),
    [
        ("", 0, 0, 0),
        ("off", 0, 0, 0),
        ("net", 0.5, 0, 0),
        ("each", 0.75, 0.5, 0.5),
    ],
)
def test_each_partial_rule_has_its_own_arithmetic(
    rule: str, one_right: float, right_and_wrong: float, all_boxes: float
) -> None:
    variant = drawn(with_rule(MULTIPLE, rule))

    def score(*keys: str) -> float:
        verdict = grade_response(variant, {"answer": list(keys)})
        assert isinstance(verdict, GradeResult)
        return verdict.score

    assert score("bcdf", "ghjk") == 1
    assert score("bcdf") == one_right
    assert score("bcdf", "lmnp") == right_and_wrong
    assert score("bcdf", "ghjk", "lmnp", "qrst") == all_boxes
    assert score("lmnp") == score("lmnp", "qrst") == 0, "no right box is ticked"


boxes = st.frozensets(st.integers(0, 6), max_size=7)


@given(
    key=boxes.filter(bool),
    chosen=boxes,
    more=st.integers(0, 6),
    rule=st.sampled_from(["", "off", "net", "each"]),
)
def test_credit_is_within_bounds_and_moves_the_right_way(
    key: frozenset[int], chosen: frozenset[int], more: int, rule: str
) -> None:
    keys = {str(k) for k in key}
    before = compute_choice_credit(keys, {str(c) for c in chosen}, 7, rule)
    after = compute_choice_credit(keys, {str(c) for c in chosen | {more}}, 7, rule)

    assert 0 <= before <= 1
    if more in key:
        assert after >= before
    elif more not in chosen:
        assert after <= before
