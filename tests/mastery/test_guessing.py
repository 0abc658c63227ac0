"""What blind guessing earns, by type of question and rule of marking."""

import pytest

from app.content.library import Library
from app.markup.model import NO_TEXT, RichText, SourceLocation
from app.mastery.evidence import guess_rate
from app.questions.model import Question
from app.questions.options import Choice
from app.questions.types.choice import ChoiceAnswer
from app.questions.types.matching import MatchAnswer, MatchPair
from app.questions.types.ordering import OrderAnswer
from app.questions.types.short_answer import ShortAnswer


def asked(answer, partial: str = "") -> Question:
    return Question(
        id="q",
        topic="t",
        type="single",
        stem=NO_TEXT,
        answer=answer,
        objectives=("1.1",),
        place=SourceLocation("quiz.md", 1),
        revision="r",
        partial=partial,  # type: ignore[arg-type] # written as the files say it
    )


def choices(right: int, wrong: int, kind="single") -> ChoiceAnswer:
    marks = [True] * right + [False] * wrong
    options = tuple(Choice(str(n), NO_TEXT, mark) for n, mark in enumerate(marks))
    return ChoiceAnswer(kind, options)


def steps(count: int) -> OrderAnswer:
    return OrderAnswer(tuple(Choice(str(n), NO_TEXT, right=True) for n in range(count)))


@pytest.mark.parametrize(("wrong", "rate"), [(1, 1 / 2), (3, 1 / 4), (4, 1 / 5)])
def test_one_of_k_choices_is_right_once_in_k_times(wrong: int, rate: float):
    assert guess_rate(asked(choices(1, wrong))) == rate


def test_all_boxes_by_a_coin_are_right_once_in_fifteen_times():
    assert guess_rate(asked(choices(2, 2, "multiple"))) == pytest.approx(1 / 15)


def test_marked_box_by_box_a_coin_earns_nearly_half():
    """Of fifteen ways the three that tick no right box earn nothing."""
    rate = guess_rate(asked(choices(2, 2, "multiple"), "each"))

    assert rate == pytest.approx(7 / 15)


def test_a_rate_is_a_share(subtests: pytest.Subtests):
    for rule in ["net", "coverage", "each", "off", ""]:
        with subtests.test(rule=rule):
            for right in range(1, 4):
                assert 0 <= guess_rate(asked(choices(right, 3, "multiple"), rule)) < 1


def test_a_row_of_a_match_is_guessed_once_in_as_many_cells():
    pairs = tuple(MatchPair(k, RichText(k, k), NO_TEXT, answer=k) for k in "abcd")

    assert guess_rate(asked(MatchAnswer("l", "r", pairs))) == 1 / 4
    assert guess_rate(asked(MatchAnswer("l", "r", pairs), "off")) == (1 / 4) ** 4


def test_steps_are_in_order_once_in_all_their_orders():
    assert guess_rate(asked(steps(3))) == pytest.approx(1 / 6)


def test_the_longest_run_of_three_shuffled_steps_earns_half():
    assert guess_rate(asked(steps(3), "lcs")) == pytest.approx(0.5)


def test_what_is_typed_cannot_be_guessed():
    assert guess_rate(asked(ShortAnswer(()))) == 0


def test_the_course_is_harder_to_guess_than_a_coin(library: Library):
    rates = [guess_rate(q) for q in library.questions.values()]

    assert all(0 <= rate <= 0.5 for rate in rates)
