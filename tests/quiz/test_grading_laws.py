"""What holds for every type and every response."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.quiz.grading import Unreadable, Verdict, grade
from tests.quiz.bank import COUNT, EVERY_TYPE, GIBIBYTES, drawn, with_rule

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
RESPONSES = st.dictionaries(
    st.sampled_from(NAMES), st.lists(VALUES, max_size=4), max_size=8
)
QUESTIONS = [*EVERY_TYPE.values(), COUNT, GIBIBYTES]


@given(
    question=st.sampled_from(QUESTIONS),
    rule=st.sampled_from(["", "off", "net", "coverage", "each", "lcs"]),
    raw=RESPONSES,
)
def test_grading_never_raises_and_stays_within_bounds(question, rule, raw) -> None:
    verdict = grade(drawn(with_rule(question, rule)), raw)

    if isinstance(verdict, Verdict):
        assert 0 <= verdict.score <= 1
        assert verdict.result in {"right", "partly", "wrong"}
        json.dumps(verdict.parsed, allow_nan=False)
    else:
        assert verdict.message.endswith((".", "”"))


@given(question=st.sampled_from(QUESTIONS), raw=RESPONSES)
def test_the_same_response_has_the_same_verdict(question, raw) -> None:
    again = json.loads(json.dumps(raw))

    assert grade(drawn(question), raw) == grade(drawn(question), again)


@pytest.mark.parametrize("kind", EVERY_TYPE)
def test_an_empty_response_is_refused_for_every_type(kind: str) -> None:
    assert isinstance(grade(drawn(EVERY_TYPE[kind]), {}), Unreadable)
