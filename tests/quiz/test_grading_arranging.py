"""Steps in order, things matched with things."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.questions.grading import grade_response
from app.questions.question_type import GradeResult, UnreadableResponse
from app.questions.types.ordering import compute_order_credit
from tests.quiz.bank import MATCH, ORDER, drawn, with_rule

RIGHT = ["zzzz", "yyyy", "xxxx", "wwww"]


def placed(*keys: str) -> dict[str, list[str]]:
    return {f"place.{key}": [str(n)] for n, key in enumerate(keys, 1)}


def test_the_right_order_is_right() -> None:
    verdict = grade_response(drawn(ORDER), placed(*RIGHT))

    assert isinstance(verdict, GradeResult)
    assert (verdict.score, verdict.parsed_response) == (1, {"order": RIGHT})


def test_an_item_that_is_no_step_is_named_where_it_was_placed() -> None:
    right = grade_response(drawn(ORDER), placed(*RIGHT))
    foreign = grade_response(drawn(ORDER), placed(*RIGHT, "vvvv"))

    assert isinstance(right, GradeResult)
    assert isinstance(foreign, GradeResult)
    assert right.given_answer == "4 of 4 steps in their place"
    assert foreign.given_answer.startswith("4 of 4 steps in their place, but “")
    assert foreign.given_answer.endswith("” is no step here")


def test_gaps_between_places_do_not_matter() -> None:
    raw = {f"place.{key}": [str(n * 2)] for n, key in enumerate(RIGHT, 1)}

    verdict = grade_response(drawn(ORDER), {**raw, "place.vvvv": [""]})

    assert isinstance(verdict, GradeResult)
    assert verdict.score == 1


@pytest.mark.parametrize(
    ("order", "score"),
    [
        (["yyyy", "zzzz", "xxxx", "wwww"], 2 / 3),
        (["wwww", "xxxx", "yyyy", "zzzz"], 0),
        (["zzzz", "yyyy", "xxxx", "wwww", "vvvv"], 2 / 3),
        (["zzzz"], 0),
    ],
)
def test_partial_credit_is_for_what_is_in_order(order: list[str], score: float) -> None:
    verdict = grade_response(drawn(ORDER), placed(*order))

    assert isinstance(verdict, GradeResult)
    assert verdict.score == pytest.approx(score)


def test_the_score_says_which_steps_earned_it() -> None:
    order, places = drawn(ORDER), drawn(with_rule(ORDER, "each"))

    swapped = grade_response(order, placed("yyyy", "zzzz", "xxxx", "wwww", "vvvv"))
    in_place = grade_response(places, placed("yyyy", "zzzz", "xxxx", "wwww"))

    assert isinstance(swapped, GradeResult)
    assert isinstance(in_place, GradeResult)
    assert swapped.score_basis == (
        "2 steps follow in the right order; 1 point off for an item that doesn\u2019t belong"
    )
    assert (swapped.score, in_place.score) == (pytest.approx(1 / 3), 1 / 2)
    assert swapped.points_text == "1 of 3 points"
    assert in_place.score_basis == "2 of 4 in their place"


@pytest.mark.parametrize(
    ("order", "credit_rule", "right"),
    [
        ("wwww zzzz yyyy xxxx", "lcs", "zzzz yyyy xxxx vvvv"),
        ("wwww vvvv zzzz yyyy", "lcs", "zzzz yyyy"),
        ("wwww xxxx yyyy zzzz", "lcs", "vvvv"),
        ("wwww yyyy xxxx zzzz", "each", "yyyy xxxx vvvv"),
    ],
)
def test_the_marks_are_on_what_the_score_counts(order: str, credit_rule: str, right: str) -> None:
    verdict = grade_response(drawn(with_rule(ORDER, credit_rule)), placed(*order.split()))

    assert isinstance(verdict, GradeResult)
    assert [mark.key for mark in verdict.part_results if mark.is_right] == right.split()


def test_without_a_rule_only_the_whole_order_counts() -> None:
    verdict = grade_response(drawn(with_rule(ORDER, "")), placed("yyyy", *RIGHT[2:], "zzzz"))

    assert isinstance(verdict, GradeResult)
    assert verdict.score == 0


def test_two_steps_at_one_place_are_refused_by_name() -> None:
    raw = {"place.zzzz": ["1"], "place.yyyy": ["1"]}

    assert grade_response(drawn(ORDER), raw) == UnreadableResponse(
        "“Rack” and “Firmware” both stand at place 1.", "Move one of them."
    )


def test_a_place_that_is_no_number_is_refused(subtests: pytest.Subtests) -> None:
    for place in ["first", "-1", "1.5", "9999", "²"]:
        with subtests.test(place=place):
            assert isinstance(
                grade_response(drawn(ORDER), {"place.zzzz": [place]}), UnreadableResponse
            )


def test_nothing_placed_is_refused() -> None:
    assert isinstance(grade_response(drawn(ORDER), {}), UnreadableResponse)


def test_the_marks_name_the_place_given_and_the_place_wanted() -> None:
    verdict = grade_response(drawn(ORDER), placed("yyyy", "zzzz", "xxxx", "wwww", "vvvv"))

    assert isinstance(verdict, GradeResult)
    first, *_, distractor = verdict.part_results
    assert (first.text.plain, first.given_answer.plain, first.right_answer.plain) == (
        "Rack",
        "2",
        "1",
    )
    assert (distractor.is_right, distractor.feedback.plain) == (False, "Never.")


@given(st.permutations(range(6)), st.integers(0, 6), st.sampled_from(["lcs", "each"]))
def test_order_credit_is_within_bounds_and_full_only_for_the_right_order(
    order: list[int], kept: int, rule: str
) -> None:
    right = [str(n) for n in range(6)]
    given_ = [str(n) for n in order[:kept]]

    score = compute_order_credit(right, given_, rule)

    assert 0 <= score <= 1
    assert (score == 1) == (given_ == right)


@given(st.permutations(range(6)))
def test_a_foreign_item_never_helps(order: list[int]) -> None:
    right = [str(n) for n in range(6)]
    given_ = [str(n) for n in order]

    assert compute_order_credit(right, [*given_, "x"], "lcs") <= compute_order_credit(
        right, given_, "lcs"
    )


def test_a_full_match_is_right_and_each_row_counts() -> None:
    both = grade_response(drawn(MATCH), {"pair.lbcd": ["rfgh"], "pair.lfgh": ["rbcd"]})
    one = grade_response(drawn(MATCH), {"pair.lbcd": ["rfgh"], "pair.lfgh": ["rjkl"]})

    assert isinstance(both, GradeResult)
    assert isinstance(one, GradeResult)
    assert (both.score, one.score) == (1, 0.5)


def test_the_rows_are_judged_in_the_order_displayed() -> None:
    verdict = grade_response(drawn(MATCH), {"pair.lbcd": ["rbcd"]})

    assert isinstance(verdict, GradeResult)
    assert [mark.label for mark in verdict.part_results] == ["InfiniBand", "NVLink"]
    wrong = verdict.part_results[1]
    assert (wrong.given_answer.plain, wrong.right_answer.plain) == ("Node to node", "GPU to GPU")
    assert wrong.feedback.plain == "In a node"


@pytest.mark.parametrize(("rule", "score"), [("off", 0), ("net", 0), ("each", 0.5)])
def test_the_rules_of_a_match(rule: str, score: float) -> None:
    raw = {"pair.lbcd": ["rfgh"], "pair.lfgh": ["rjkl"]}

    verdict = grade_response(drawn(with_rule(MATCH, rule)), raw)

    assert isinstance(verdict, GradeResult)
    assert verdict.score == score


def test_an_unknown_match_counts_as_none() -> None:
    assert isinstance(grade_response(drawn(MATCH), {"pair.lbcd": ["nope"]}), UnreadableResponse)
