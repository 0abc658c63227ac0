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
    Standings,
    choices_by_fifth,
    describe_items,
    describe_test,
    discrimination_interval,
    facility_change,
    learner_standings,
    never_chosen,
    probable_wrong_key,
)
from app.questions.types.choice import guess_score

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
SD = [0, 0, 0, 0, N, N, N, 191.2733589, 25.12738111, 32.26312277, 33.34199022,
      33.75811591, 49.23659639, 50.32362797, 51.17663157, 50.32362797, 49.23659639,
      50.96471914, 45.58423058, 51.17663157]  # fmt: skip
EFFECTIVE = [0, 0, 0, 0, 0, 0, 0, 26.58464457, 3.368456046, 3.253955259, 7.584083694,
             3.79658376, 3.183278505, 4.532356904, 7.78856243, 10.08351572, 8.381139345,
             8.727645713, 7.946277111, 4.769500946]  # fmt: skip
DISCRIMINATION = [N, N, N, N, N, N, N, 25.88327077, 1.170256965, -4.207816809,
                  28.16930644, -2.513606859, -12.99017581, -8.900638238, 8.670004606,
                  29.63337745, 15.18945843, 16.21079629, 15.52451404,
                  -8.396734802]  # fmt: skip
EFFICIENCY = [N, N, N, N, N, N, N, 27.23492723, 1.382386552, -4.691171307, 31.12404354,
              -2.877487579, -17.5074184, -10.27568922, 10.86956522, 34.58997279,
              17.4790556, 20.14359793, 22.06477733, -10]  # fmt: skip


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
            found = describe_items(example())[f"{slot:02}"]

            assert found.facility == near(FACILITY[slot - 1])
            # The example states the spread of slot 8 in marks, not as a share of its 8.
            worth = 8 if slot == 8 else 1
            sd = SD[slot - 1]
            assert found.sd == near(None if sd is None else sd / worth)
            assert found.effective == near(EFFECTIVE[slot - 1])
            assert found.discrimination == near(DISCRIMINATION[slot - 1])
            assert found.efficiency == near(EFFICIENCY[slot - 1])


def near(value: float | None) -> object:
    return None if value is None else pytest.approx(value, abs=1e-6)


def test_weights_as_they_act_add_up_to_the_whole() -> None:
    found = describe_items(example()).values()

    assert math.fsum(i.effective or 0 for i in found) == pytest.approx(100)
    assert math.fsum(i.intended or 0 for i in found) == pytest.approx(100)


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

    assert describe_test(responses).consistency == pytest.approx(100 * kr20)


def test_under_ten_first_attempts_nothing_is_enough() -> None:
    few = describe_items(ItemResponse(n, "q", 1.0) for n in range(9))["q"]
    more = describe_items(ItemResponse(n, "q", 1.0) for n in range(10))["q"]

    assert not few.enough
    assert few.interval is None
    assert more.enough
    assert more.interval == (100, 100)


def test_the_interval_is_the_same_each_time_and_holds_the_facility() -> None:
    responses = [ItemResponse(n, "q", n % 3 / 2) for n in range(30)]
    first, again = (describe_items(responses)["q"] for _ in range(2))

    assert first == again
    assert first.interval is not None
    assert first.facility is not None
    assert first.interval[0] < first.facility < first.interval[1]


def an_item(*options: OptionStatistics) -> ItemStatistics:
    return ItemStatistics("q", 40, options=options)


def test_an_option_that_the_strong_prefer_to_the_key_is_named() -> None:
    suspect = an_item(OptionStatistics("a", 20, 0.5, 0.4), OptionStatistics("b", 20, 0.5, 0.7))

    assert probable_wrong_key(suspect, ["a"]) == "b"
    assert probable_wrong_key(suspect, ["b"]) is None


def test_a_distractor_that_nobody_takes_is_named() -> None:
    item = an_item(OptionStatistics("a", 40, 1.0, 0.5))

    assert never_chosen(item, ["b", "c"]) == ("b", "c")


def test_blind_guessing_has_a_price() -> None:
    assert guess_score("single", 4, 1) == 25
    assert guess_score("multiple", 4, 2) == pytest.approx(100 / 6)
    assert guess_score("true-false", 2, 1) == 50
    assert guess_score("numeric", 0, 0) is None


def test_an_edit_shows_as_a_difference_with_its_interval() -> None:
    before, after = [0.0] * 15 + [1.0] * 5, [1.0] * 15 + [0.0] * 5
    found = facility_change(before, after)

    assert found is not None
    assert found[0] == pytest.approx(50)
    assert 0 < found[1] < 50 < found[2]
    assert facility_change(before[:9], after) is None


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
    for item in describe_items(responses).values():
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


def of_x(rows: list[ItemResponse]) -> tuple[list[ItemResponse], Standings]:
    return [row for row in rows if row.item == "x"], learner_standings(rows)


def test_a_discrimination_has_an_interval_that_holds_it() -> None:
    rows = skilled(30)

    interval = discrimination_interval(*of_x(rows))

    index = describe_items(rows)["x"].discrimination
    assert interval is not None
    assert interval[0] < index < interval[1]
    assert interval == discrimination_interval(*of_x(rows))


@pytest.mark.parametrize("learners", [9, 50])
def test_few_learners_have_no_interval_and_many_need_none(learners: int) -> None:
    assert discrimination_interval(*of_x(skilled(learners))) is None


def test_fifths_go_from_the_weakest_to_the_strongest() -> None:
    found = choices_by_fifth(*of_x(skilled(60)))

    assert [count for count, _ in found] == [12] * 5
    assert found[0][1] == {"b": 1.0}
    assert found[4][1] == {"a": 1.0}
    assert choices_by_fifth(*of_x(skilled(49))) == ()
