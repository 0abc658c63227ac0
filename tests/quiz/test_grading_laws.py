"""What holds for every type and every response."""

import itertools
import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.content.course import Course
from app.questions.grading import grade_response
from app.questions.model import Variant, draw_variant
from app.questions.question_type import GradeResult, UnreadableResponse
from app.questions.types.choice import ChoiceSpec
from app.questions.types.cloze import ClozeSpec
from app.questions.types.design import DesignSpec
from app.questions.types.matching import MatchSpec
from app.questions.types.ordering import OrderSpec, compute_order_credit
from tests.quiz.bank import CLOZE, COUNT, EVERY_TYPE, GIBIBYTES, MATCH, drawn, with_rule

NAMES = [
    "answer",
    "unit",
    *(f"place.{key}" for key in ("zzzz", "yyyy", "xxxx", "wwww", "vvvv")),
    *("pair.lbcd", "pair.lfgh", "blank.bcdf", "blank.ghjk", "other"),
    *("choose.gpu", "choose.tensor_parallel", "choose.model"),
]
VALUES = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        [
            "bcdf",
            "ghjk",
            "lmnp",
            "rfgh",
            "1",
            "2",
            "3",
            "RoCE",
            "all-reduce",
            "1,120 GB",
        ]
    ),
    st.floats().map(str),
    st.text("0123456789., '_eE+-^×GBms%", max_size=20),
)
RESPONSES = st.dictionaries(st.sampled_from(NAMES), st.lists(VALUES, max_size=4), max_size=8)
QUESTIONS = [*EVERY_TYPE.values(), COUNT, GIBIBYTES]


@given(
    question=st.sampled_from(QUESTIONS),
    rule=st.sampled_from(["", "off", "net", "each", "lcs"]),
    raw=RESPONSES,
)
def test_grading_never_raises_and_stays_within_bounds(question, rule, raw) -> None:
    verdict = grade_response(drawn(with_rule(question, rule)), raw)

    if isinstance(verdict, GradeResult):
        assert 0 <= verdict.score <= 1
        assert verdict.result in {"right", "partly", "wrong"}
        json.dumps(verdict.parsed_response, allow_nan=False)
    else:
        assert verdict.message.endswith((".", "”"))


@given(question=st.sampled_from(QUESTIONS), raw=RESPONSES)
def test_the_same_response_has_the_same_verdict(question, raw) -> None:
    again = json.loads(json.dumps(raw))

    assert grade_response(drawn(question), raw) == grade_response(drawn(question), again)


@pytest.mark.parametrize("kind", EVERY_TYPE)
def test_an_empty_response_is_refused_for_every_type(kind: str) -> None:
    assert isinstance(grade_response(drawn(EVERY_TYPE[kind]), {}), UnreadableResponse)


def fields(variant: Variant) -> list[str]:
    """The names of the fields in which a question is answered."""
    answer = variant.answer
    if isinstance(answer, OrderSpec):
        return [f"place.{o.key}" for o in (*answer.steps, *answer.distractors)]
    if isinstance(answer, MatchSpec):
        return [f"pair.{pair.key}" for pair in answer.pairs]
    if isinstance(answer, ClozeSpec):
        return [f"blank.{blank.key}" for blank in answer.blanks]
    if isinstance(answer, DesignSpec):
        return [f"choose.{name}" for name in answer.choose]
    return ["answer", "unit"]


def words(variant: Variant) -> list[str]:
    """What an honest form could send, besides numbers."""
    answer = variant.answer
    if isinstance(answer, ChoiceSpec):
        return [option.key for option in answer.options]
    if isinstance(answer, MatchSpec):
        return [pair.answer for pair in answer.pairs]
    return ["1", "2", "8", "fp8", "none", "h100-sxm5-80", "GB", "%", "1e400", "-0"]


@given(data=st.data())
def test_no_response_to_a_question_of_the_course_raises(
    shipped: Course, data: st.DataObject
) -> None:
    question = data.draw(st.sampled_from([*shipped.questions.values()]))
    variant = draw_variant(question, data.draw(st.integers(0, 2**31 - 1)))
    value = VALUES | st.sampled_from(words(variant))
    names = st.sampled_from(fields(variant)) | st.text(max_size=5)

    verdict = grade_response(
        variant, data.draw(st.dictionaries(names, st.lists(value, max_size=3)))
    )

    if isinstance(verdict, GradeResult):
        assert 0 <= verdict.score <= 1
        json.dumps(verdict.parsed_response, allow_nan=False)
    else:
        assert verdict.message


# --- partial credit never falls when an answer gets better ------------------------

SIX = [str(n) for n in range(6)]


@given(
    order=st.permutations(SIX),
    foreign=st.sets(st.sampled_from("xyz")),
    at=st.integers(0, 4),
)
def test_steps_put_right_among_themselves_never_cost(
    order: list[str], foreign: set[str], at: int
) -> None:
    """Two neighbors in the wrong order change places; a foreign item leaves."""
    given_ = [*order, *sorted(foreign)]
    better = list(given_)
    better[at : at + 2] = sorted(better[at : at + 2])

    before = compute_order_credit(SIX, given_, "lcs")

    assert compute_order_credit(SIX, better, "lcs") >= before
    for item in foreign:
        without = [key for key in given_ if key != item]
        assert compute_order_credit(SIX, without, "lcs") >= before


@given(order=st.permutations(SIX), place=st.integers(0, 5))
def test_a_step_put_into_its_place_never_costs(order: list[str], place: int) -> None:
    better, there = list(order), order.index(SIX[place])
    better[place], better[there] = better[there], better[place]

    assert compute_order_credit(SIX, better, "each") >= compute_order_credit(SIX, order, "each")


@pytest.mark.parametrize("rule", ["", "off", "net", "each"])
def test_a_row_matched_right_never_costs_and_a_wrong_one_never_pays(rule: str) -> None:
    chosen = ["", "rfgh", "rbcd", "rjkl"]

    def score(nvlink: str, infiniband: str) -> float:
        raw = {"pair.lbcd": [nvlink], "pair.lfgh": [infiniband]}
        return points(grade_response(drawn(with_rule(MATCH, rule)), raw))

    never_falls(score, chosen, right=("rfgh", "rbcd"))


@pytest.mark.parametrize("rule", ["", "off", "each"])
def test_a_gap_filled_right_never_costs(rule: str) -> None:
    typed = ["", "RoCE", "lossless", "something else"]

    def score(first: str, second: str) -> float:
        raw = {"blank.bcdf": [first], "blank.ghjk": [second]}
        return points(grade_response(drawn(with_rule(CLOZE, rule)), raw))

    never_falls(score, typed, right=("RoCE", "lossless"))


def points(verdict: GradeResult | UnreadableResponse) -> float:
    return verdict.score if isinstance(verdict, GradeResult) else 0.0


def never_falls(
    score: Callable[[str, str], float], answers: list[str], right: tuple[str, str]
) -> None:
    """For all pairs of answers: none, then wrong, then right in each of two places."""
    for one, other in itertools.product(answers, repeat=2):
        now = score(one, other)
        assert 0 <= now <= 1
        assert score(right[0], other) >= now
        assert score(one, right[1]) >= now
        if one == "":
            wrong = set(answers) - {"", right[0]}
            assert max(score(word, other) for word in wrong) <= now
    assert score(*right) == 1
