"""Item statistics: the published worked example, and what follows from the formulas.

The marks are those of the example that Moodle's own statistics tests publish (22
attempts at 20 questions; the expected figures there come from a spreadsheet made
independently). Slots 1 to 4 earned nothing, 5 to 7 are worth nothing, 8 is worth 8.
"""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.authoring.item_statistics import (
    ItemResponse,
    ItemStatistics,
    OptionStatistics,
    compute_correlation_interval,
    compute_item_statistics,
    compute_test_statistics_of_complete_learners,
    find_never_chosen_options,
    find_probably_right_distractor,
)
from app.questions.types.choice import compute_choice_guess_percent

# Slots 8 9 10 11 12, then 19 20 17 18 14 15 16 13, one line per attempt.
SLOTS = (8, 9, 10, 11, 12, 19, 20, 17, 18, 14, 15, 16, 13)
MARKS = """
5.5 .3 .9 1 .3  0 1 1 0 0 0 1 1
1 .9 .9 .3 .3   0 1 0 1 0 0 1 1
2.5 1 .9 .3 1   1 1 1 1 0 1 1 0
4 .3 .9 1 .3    0 1 1 0 0 0 0 0
3 .9 .3 .9 1    1 0 1 1 1 0 0 0
4.5 .9 1 1 .9   0 0 0 0 1 1 1 0
3 .3 .3 .3 .3   1 1 1 1 0 1 1 1
6 .9 .9 1 .3    0 1 1 0 1 1 1 0
.5 .9 1 .9 .3   0 1 1 1 1 1 0 0
5.5 .9 1 .9 .3  0 0 1 0 1 0 0 1
2.5 .9 1 1 .9   0 1 1 0 1 0 0 0
4 .9 .3 .9 1    0 1 1 1 1 1 1 0
4 .9 .3 .3 1    1 0 0 1 1 1 0 1
3 1 1 .3 1      1 0 1 1 1 0 1 0
1 1 .9 .3 .3    0 0 0 0 0 1 0 1
1 .3 .3 .3 .9   0 1 0 0 0 0 1 0
1.5 1 .3 .9 1   0 0 1 0 1 0 1 1
4 .9 1 .9 1     0 0 0 1 1 1 1 0
2 .9 .9 .3 .9   0 0 0 0 1 0 0 0
1 1 .3 .3 .3    0 0 1 0 1 1 0 0
6 .9 1 1 .9     1 1 0 0 0 0 1 0
7 .9 .3 .3 .3   0 0 1 1 0 1 1 1
"""
N = None
FACILITY = [0, 0, 0, 0, N, N, N, 41.19318182, 81.36363636, 71.36363636, 65.45454545,
            65.90909091, 36.36363636, 59.09090909, 50, 59.09090909, 63.63636364,
            45.45454545, 27.27272727, 50]  # fmt: skip
DISCRIMINATION = [N, N, N, N, N, N, N, 25.88327077, 1.170256965, -4.207816809,
                  28.16930644, -2.513606859, -12.99017581, -8.900638238, 8.670004606,
                  29.63337745, 15.18945843, 16.21079629, 15.52451404,
                  -8.396734802]  # fmt: skip


def example() -> list[ItemResponse]:
    responses = []
    for learner, line in enumerate(MARKS.strip().splitlines()):
        marks = dict(zip(SLOTS, map(float, line.split()), strict=True))
        for slot in range(1, 21):
            worth = 8.0 if slot == 8 else 0.0 if slot in (5, 6, 7) else 1.0
            responses.append(ItemResponse(learner, f"{slot:02}", marks.get(slot, 0.0), worth))
    return responses


def test_the_published_example_is_reproduced(subtests: pytest.Subtests) -> None:
    for slot in range(1, 21):
        with subtests.test(slot=slot):
            found = compute_item_statistics(example())[f"{slot:02}"]

            assert found.facility == near(FACILITY[slot - 1])
            assert found.discrimination == near(DISCRIMINATION[slot - 1])


def near(value: float | None) -> object:
    return None if value is None else pytest.approx(value, abs=1e-6)


def test_alpha_is_kr20_when_marks_are_right_or_wrong() -> None:
    rows = [(1, 1, 1), (1, 1, 0), (1, 0, 0), (0, 0, 0), (1, 1, 1)]
    responses = [
        ItemResponse(n, str(i), mark) for n, row in enumerate(rows) for i, mark in enumerate(row)
    ]
    totals = [sum(row) for row in rows]
    mean = sum(totals) / 5
    variance = sum((t - mean) ** 2 for t in totals) / 4
    shares = [sum(row[i] for row in rows) / 5 for i in range(3)]
    kr20 = 3 / 2 * (1 - sum(p * (1 - p) * 5 / 4 for p in shares) / variance)

    assert compute_test_statistics_of_complete_learners(
        responses
    ).cronbach_alpha_percent == pytest.approx(100 * kr20)


def test_under_ten_first_attempts_nothing_is_enough() -> None:
    few = compute_item_statistics(ItemResponse(n, "q", 1.0) for n in range(9))["q"]
    more = compute_item_statistics(ItemResponse(n, "q", 1.0) for n in range(10))["q"]

    assert not few.has_enough_responses
    assert more.has_enough_responses


def an_item(*options: OptionStatistics) -> ItemStatistics:
    return ItemStatistics("q", 40, option_statistics=options)


def test_an_option_that_the_strong_prefer_to_the_key_is_named() -> None:
    suspect = an_item(
        OptionStatistics("a", 20, 0.5, 0.4, 0.05), OptionStatistics("b", 20, 0.5, 0.7, 0.05)
    )

    assert find_probably_right_distractor(suspect, ["a"]) == "b"
    assert find_probably_right_distractor(suspect, ["b"]) is None


def test_a_difference_that_chance_can_explain_names_no_option() -> None:
    unsure = an_item(
        OptionStatistics("a", 20, 0.5, 0.4, 0.15), OptionStatistics("b", 20, 0.5, 0.7, 0.15)
    )

    assert find_probably_right_distractor(unsure, ["a"]) is None


def test_a_distractor_that_nobody_takes_is_named() -> None:
    item = ItemStatistics("q", 60, option_statistics=(OptionStatistics("a", 60, 1.0, 0.5),))

    assert find_never_chosen_options(item, ["b", "c"]) == ("b", "c")


def test_blind_guessing_has_a_price() -> None:
    assert compute_choice_guess_percent("single", 4, 1) == 25
    assert compute_choice_guess_percent("multiple", 4, 2) == pytest.approx(100 / 6)
    assert compute_choice_guess_percent("true-false", 2, 1) == 50
    assert compute_choice_guess_percent("numeric", 0, 0) is None


@given(
    st.lists(
        st.builds(
            ItemResponse,
            st.integers(0, 5),
            st.sampled_from("abc"),
            st.floats(0, 1),
            st.just(1.0),
            st.tuples(st.sampled_from("xy")),
        )
    )
)
def test_any_responses_give_statistics(responses: list[ItemResponse]) -> None:
    for item in compute_item_statistics(responses).values():
        assert item.facility is None or -1e-9 <= item.facility <= 100 + 1e-9
        assert item.discrimination is None or abs(item.discrimination) <= 100 + 1e-6


def skilled(learners: int) -> list[ItemResponse]:
    """Learners of rising skill at eleven items; option a is the key of `x`."""
    rows = []
    for place in range(learners):
        good = place >= learners / 2
        rows.append(ItemResponse(place, "x", float(good), 1.0, ("a" if good else "b",)))
        rows += [ItemResponse(place, f"i{n}", float(n * learners < place * 10)) for n in range(10)]
    return rows


def test_a_discrimination_has_an_interval_that_holds_it() -> None:
    item = compute_item_statistics(skilled(30))["x"]

    assert item.discrimination_interval is not None
    low, high = item.discrimination_interval
    assert -100 < low < item.discrimination < high < 100
    assert compute_item_statistics(skilled(3))["x"].discrimination_interval is None


# Worked by hand: atanh(0.5) = 0.549306, 1.959964 ÷ √27 = 0.377195.
def test_the_interval_of_a_correlation_is_fishers() -> None:
    assert compute_correlation_interval(0.5, 30) == pytest.approx(
        (math.tanh(0.549306 - 0.377195), math.tanh(0.549306 + 0.377195)), abs=1e-5
    )
    assert compute_correlation_interval(1.0, 30) is None
    assert compute_correlation_interval(0.5, 3) is None
