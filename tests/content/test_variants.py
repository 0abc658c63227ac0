"""One attempt's form of a question: numbers drawn, options shuffled, all repeatable."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.content.course import Course
from app.content.file_reader import parse_file
from app.markup.expressions import ExpressionError
from app.questions import model
from app.questions.model import Question, compute_seed_for_attempt, draw_variant
from app.questions.types.choice import ChoiceSpec
from app.questions.types.matching import MatchSpec
from app.questions.types.number_parsing import NumericSpec
from app.questions.types.ordering import OrderSpec

QUIZ = "topics/case/quiz.md"
FRONT = "---\ntitle: Case\nobjective: 1.1\nsource: herd\n---\n\n"


def item(text: str) -> Question:
    reading = parse_file(FRONT + text, QUIZ)
    assert [p for p in reading.problems if p.severity == "error"] == []
    return reading.questions[0]


COMPUTED = item("""\
### How much for {n:,} of {size}?
<!-- q: computed
type: numeric
params:
  n: 1000..3000 step 1000
  size: [7B, 70B]
let:
  right: n * 2 GB
-->

- [x] `{right:.3g} GB ± 3%`
- [ ] `{n} GB`
  > Twice that.

> [!NOTE]
> $2 \\times {n} = {right}$ GB for {size}.
""")


def test_the_same_seed_gives_the_same_variant(course: Course) -> None:
    for question in course.questions.values():
        assert draw_variant(question, 7) == draw_variant(question, 7)


def test_a_computed_question_is_filled_everywhere() -> None:
    variant = draw_variant(COMPUTED, 1)

    assert variant.parameter_values == {"n": 2000, "size": "7B"}
    assert variant.stem.html == "How much for 2,000 of 7B?"
    assert isinstance(variant.answer, NumericSpec)
    right, wrong = variant.answer.options
    assert right.template == "4,000 GB ± 3%"
    assert right.range is not None
    assert right.range.low == pytest.approx(3880e9)
    assert right.range.high == pytest.approx(4120e9)
    assert wrong.range is not None
    assert wrong.range.center == 2000e9
    assert "<mn>4000</mn>" in variant.explanation.html
    assert "for 7B." in variant.explanation.html


def test_the_calculator_opens_with_the_numbers_drawn(course: Course) -> None:
    variant = draw_variant(course.questions["k-size"], 0)

    path, _, query = variant.calculator_url.partition("?")
    assert path == "/calculators/kv-cache"
    assert query == "model=llama-3.1-8b&sequences=1&context=2048&cache=fp16"


def test_options_are_shuffled_and_those_about_others_stay_last() -> None:
    options = "".join(f"- [ ] {w}\n  > No.\n" for w in ("A", "B", "C", "D"))
    question = item(
        "### Which?\n<!-- q: which -->\n\n- [ ] All of the above\n  > No.\n- [x] Right\n" + options
    )

    orders = {tuple(o.text.plain for o in shown(question, s)) for s in range(50)}

    assert len(orders) > 20
    assert {order[-1] for order in orders} == {"All of the above"}


def shown(question: Question, seed: int) -> tuple:
    answer = draw_variant(question, seed).answer
    assert isinstance(answer, ChoiceSpec)
    return answer.options


def test_true_and_false_keep_their_places(course: Course) -> None:
    question = course.questions["w-grow"]

    assert {tuple(o.text.plain for o in shown(question, s)) for s in range(20)} == {
        ("True", "False")
    }


def test_shuffle_no_keeps_the_authored_order() -> None:
    question = item(
        "### Which?\n<!-- q: which\nshuffle: no\n-->\n\n- [x] One\n- [ ] Two\n  > No.\n"
        "- [ ] Three\n  > No.\n"
    )

    assert [o.text.plain for o in shown(question, 3)] == ["One", "Two", "Three"]


def test_steps_are_never_shown_in_the_right_order(course: Course) -> None:
    question = course.questions["k-order"]
    for seed in range(100):
        answer = draw_variant(question, seed).answer
        assert isinstance(answer, OrderSpec)
        right = [s.key for s in answer.steps]
        assert [k for k in answer.shown if k in right] != right
        assert len(answer.shown) == len(answer.steps) + len(answer.distractors)


def test_both_sides_of_a_match_are_shown_once(course: Course) -> None:
    answer = draw_variant(course.questions["k-match"], 5).answer

    assert isinstance(answer, MatchSpec)
    assert sorted(answer.shown_left) == sorted(p.key for p in answer.pairs if p.left.html)
    assert sorted(answer.shown_right) == sorted({p.answer for p in answer.pairs})


@given(st.text(max_size=20), st.integers(0, 50))
def test_attempts_in_a_row_draw_different_numbers(learner: str, n: int) -> None:
    one, other = (
        draw_variant(COMPUTED, compute_seed_for_attempt(COMPUTED, learner, i)) for i in (n, n + 1)
    )

    assert one.parameter_values != other.parameter_values


@given(st.text(max_size=20))
def test_every_combination_comes_before_one_comes_again(learner: str) -> None:
    count = model.count_combinations(COMPUTED.computed) if COMPUTED.computed else 0
    drawn = [
        tuple(
            draw_variant(
                COMPUTED, compute_seed_for_attempt(COMPUTED, learner, n)
            ).parameter_values.values()
        )
        for n in range(count)
    ]

    assert len(set(drawn)) == count == 6


@given(st.text(max_size=20), st.integers(0, 1000))
def test_a_seed_fits_a_column_of_32_bits(learner: str, n: int) -> None:
    assert 0 <= compute_seed_for_attempt(COMPUTED, learner, n) < 2**31


def test_plain_questions_are_shuffled_anew_at_each_attempt(course: Course) -> None:
    question = course.questions["w-smaller"]
    seeds = {compute_seed_for_attempt(question, "rosa", n) for n in range(20)}

    assert len(seeds) == 20


def test_all_variants_of_the_course_have_an_answer(course: Course) -> None:
    for question in course.questions.values():
        for variant in model.iterate_variants_up_to_limit(question):
            if isinstance(variant.answer, NumericSpec):
                assert all(o.range for o in variant.answer.options)


def test_many_combinations_are_sampled_over_their_whole_range() -> None:
    assert COMPUTED.computed is not None
    wide = dataclasses.replace(
        COMPUTED,
        computed=dataclasses.replace(
            COMPUTED.computed, possible_values_by_name={"n": tuple(range(1000)), "size": ("7B",)}
        ),
    )

    seeds = model.list_seeds_up_to_variant_limit(wide)

    assert len(seeds) == 200
    assert max(seeds) == 995


def test_a_combination_without_an_answer_is_refused_by_name() -> None:
    assert COMPUTED.computed is not None
    broken = dataclasses.replace(
        COMPUTED,
        computed=dataclasses.replace(
            COMPUTED.computed, named_expressions=(("right", "1 / (n - n)"),)
        ),
    )

    with pytest.raises(ExpressionError, match="has no value"):
        draw_variant(broken, 0)
