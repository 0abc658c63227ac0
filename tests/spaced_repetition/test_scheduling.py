"""Study days, FSRS numbers, steps, fuzz, replay."""

import collections
import dataclasses
import datetime as dt
import itertools
import random
import zoneinfo

import fsrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounts.current_learner import LearnerProfile
from app.spaced_repetition.queue import StudyDayCardCounts, count_new_cards_still_allowed
from app.spaced_repetition.scheduler import (
    CardState,
    ReviewEvent,
    apply_review,
    compute_fuzz_range,
    compute_retrievability_on_day,
    format_interval,
    fuzz_interval,
    is_leech_warning_due,
    preview_states_by_rating,
    replay_log,
)

NOON = dt.time(12, tzinfo=dt.UTC)
START = dt.date(2026, 6, 9)


def grade(rating: int, day: dt.date = START, hour: float = 12.0) -> ReviewEvent:
    at = dt.datetime.combine(day, dt.time(), dt.UTC) + dt.timedelta(hours=hour)
    return ReviewEvent(rating, at, day)


def reviewed(ratings: list[tuple[int, int]]) -> CardState:
    """The standing after (rating, days since the last answer) pairs."""
    day, grades = START, []
    for rating, days in ratings:
        day += dt.timedelta(days=days)
        grades.append(grade(rating, day))
    standing = replay_log(grades).card_state
    assert standing is not None
    return standing


# --- numbers of the reference -------------------------------------------------------


def random_history(seed: int) -> list[tuple[int, int]]:
    dice = random.Random(seed)  # noqa: S311 - a history, not a secret
    return [
        (
            dice.choices([1, 2, 3, 4], [2, 2, 5, 1])[0],
            dice.choice([0, 0, 1, 2, 3, 7, 15, 40, 200]),
        )
        for _ in range(dice.randint(1, 14))
    ]


def test_a_thousand_histories_agree_with_the_reference(
    subtests: pytest.Subtests,
) -> None:
    for block in range(10):
        with subtests.test(block=block):
            reference = fsrs.Scheduler(enable_fuzzing=False)
            for seed in range(block * 100, block * 100 + 100):
                history = random_history(seed)
                card, moment = fsrs.Card(card_id=1), dt.datetime.combine(START, NOON)
                for rating, days in history:
                    moment += dt.timedelta(days=days)
                    card, _ = reference.review_card(card, fsrs.Rating(rating), moment)

                standing = reviewed(history)

                assert standing.stability == pytest.approx(card.stability, rel=1e-9)
                assert standing.difficulty == pytest.approx(card.difficulty, rel=1e-9)
                assert standing.state == card.state.name.lower()
                later = standing.last_day + dt.timedelta(days=seed % 50)
                at = dt.datetime.combine(later, NOON)
                expected = reference.get_card_retrievability(card, at)
                assert compute_retrievability_on_day(standing, later) == expected
                if standing.state == "review":
                    assert standing.due_day == card.due.date()


# (rating, days) → stability, difficulty, days until due; computed with py-fsrs 6.3.2
# and its default parameters, moments set a whole number of days apart at noon UTC.
STORED = [
    ([(3, 0)], 2.3065, 2.118104, 0),
    ([(4, 0)], 8.2956, 1.0, 8),
    ([(3, 0), (3, 0)], 2.3065, 2.111213, 2),
    ([(3, 0), (3, 0), (3, 2)], 10.971048, 2.104331, 11),
    ([(3, 0), (3, 0), (3, 2), (1, 11)], 1.539013, 7.389976, 0),
    ([(1, 0), (3, 0), (3, 0), (2, 3)], 2.067716, 7.589367, 2),
    (
        [(2, 0), (2, 0), (3, 1), (4, 5), (1, 40), (3, 0), (3, 9)],
        7.909114,
        8.519306,
        8,
    ),
]


def test_stored_reference_values_still_hold(subtests: pytest.Subtests) -> None:
    for history, stability, difficulty, days in STORED:
        with subtests.test(history=history, stability=stability, difficulty=difficulty):
            standing = reviewed(history)

            assert standing.stability == pytest.approx(stability, abs=1e-4)
            assert standing.difficulty == pytest.approx(difficulty, abs=1e-4)
            assert (standing.due_day - standing.last_day).days == days


def test_recall_falls_to_the_wanted_share_after_one_stability() -> None:
    standing = reviewed([(4, 0)])

    assert compute_retrievability_on_day(standing, START) == 1
    assert compute_retrievability_on_day(standing, START + dt.timedelta(days=8)) == pytest.approx(
        0.9, abs=0.01
    )


def test_wanting_to_know_more_brings_cards_back_sooner() -> None:
    relaxed, strict = (
        apply_review(None, dataclasses.replace(grade(4), desired_retention=share))
        for share in (0.8, 0.97)
    )

    assert strict.due_day < relaxed.due_day
    assert strict.stability == relaxed.stability


# --- study days ---------------------------------------------------------------------


def learner_in(zone: str) -> LearnerProfile:
    return LearnerProfile(key="x", zone=zone)


def answered_at(zone: str, *moments: str) -> CardState:
    """Good answers at local moments in `zone`."""
    learner, place = learner_in(zone), zoneinfo.ZoneInfo(zone)
    grades = []
    for words in moments:
        at = dt.datetime.fromisoformat(words).replace(tzinfo=place).astimezone(dt.UTC)
        grades.append(ReviewEvent(3, at, learner.study_day(at)))
    standing = replay_log(grades).card_state
    assert standing is not None
    return standing


def test_late_night_belongs_to_the_evening_before() -> None:
    """Eleven at night, one and three in the morning are one study day."""
    night = answered_at("Europe/Berlin", "2026-06-09T23:00", "2026-06-10T01:00", "2026-06-10T03:00")
    noon = answered_at("Europe/Berlin", "2026-06-09T12:00", "2026-06-09T12:10", "2026-06-09T12:20")

    assert night.stability == noon.stability
    assert night.due_day == noon.due_day


def test_seven_hours_across_the_rollover_are_a_day() -> None:
    """23:00 to 06:00 is less than 24 hours and yet the next study day."""
    slept = answered_at("Europe/Berlin", "2026-06-09T22:50", "2026-06-09T23:00", "2026-06-10T06:00")
    whole = answered_at("Europe/Berlin", "2026-06-09T11:50", "2026-06-09T12:00", "2026-06-10T12:00")

    assert slept.stability == whole.stability


def test_thirty_hours_may_still_be_one_day() -> None:
    """04:30 and 10:30 of the next day: 30 hours, one study day apart."""
    long = answered_at("UTC", "2026-06-09T04:20", "2026-06-09T04:30", "2026-06-10T10:30")
    short = answered_at("UTC", "2026-06-09T22:00", "2026-06-09T22:10", "2026-06-10T04:10")

    assert long.stability == short.stability


def test_the_clocks_going_forward_or_back_change_nothing(
    subtests: pytest.Subtests,
) -> None:
    for zone, before, next_ in [
        ("Europe/Berlin", "2026-03-28T12:00", "2026-03-29T12:00"),  # 23 hours
        ("Europe/Berlin", "2026-10-24T12:00", "2026-10-25T12:00"),  # 25 hours
        ("America/New_York", "2026-03-07T23:30", "2026-03-08T05:00"),
        ("Australia/Lord_Howe", "2026-04-04T12:00", "2026-04-05T12:00"),
        ("Pacific/Apia", "2026-06-09T12:00", "2026-06-10T12:00"),
        ("Asia/Kathmandu", "2026-06-09T12:00", "2026-06-10T12:00"),
    ]:
        with subtests.test(zone=zone, before=before, next_=next_):
            shifted = answered_at(zone, before, before, next_)
            plain = answered_at("UTC", "2026-06-09T12:00", "2026-06-09T12:00", "2026-06-10T12:00")

            assert shifted.stability == plain.stability
            assert (shifted.due_day - shifted.last_day) == (plain.due_day - plain.last_day)


def test_flying_west_into_the_day_before_is_the_same_day_not_an_error() -> None:
    standing = apply_review(reviewed([(3, 0), (3, 0)]), grade(3, START - dt.timedelta(days=1)))

    assert standing.stability == reviewed([(3, 0), (3, 0), (3, 0)]).stability


# --- steps and buttons --------------------------------------------------------------


def words(before: CardState | None, asked: ReviewEvent) -> list[str]:
    return [
        format_interval(standing, asked).replace("\u00a0", " ")
        for standing in preview_states_by_rating(before, asked)
    ]


def test_the_buttons_of_a_new_card() -> None:
    assert words(None, grade(3)) == ["≤ 1 min", "≤ 6 min", "≤ 10 min", "8 days"]


def test_the_buttons_of_a_known_card() -> None:
    standing = reviewed([(3, 0), (3, 0)])

    assert words(standing, grade(3, START + dt.timedelta(days=2))) == [
        "≤ 10 min",
        "8 days",
        "11 days",
        "19 days",
    ]


def test_a_lapse_is_counted_and_sends_the_card_through_its_step() -> None:
    standing = reviewed([(3, 0), (3, 0), (1, 2)])

    assert (standing.state, standing.lapses, standing.reviews) == ("relearning", 1, 3)
    assert standing.due_at - standing.last_at == dt.timedelta(minutes=10)
    assert standing.due_day == standing.last_day


def test_failing_a_card_that_is_being_learned_is_no_lapse() -> None:
    assert reviewed([(1, 0), (1, 0)]).lapses == 0


# --- fuzz ---------------------------------------------------------------------------


@given(st.integers(1, 2000), st.integers(0, 400), st.text(max_size=8))
def test_fuzz_stays_in_its_range(days: int, previous: int, seed: str) -> None:
    low, high = compute_fuzz_range(days, previous)

    assert low <= days <= high
    assert low <= fuzz_interval(days, previous, seed, 1, START) <= high
    if days > previous and days > 2:
        assert low > previous or low == days


def test_fuzz_spreads_cards_and_repeats_itself() -> None:
    history = [grade(3), grade(3), grade(4, START + dt.timedelta(days=2))]

    dues = {str(n): replay_log(history, str(n)).card_state for n in range(40)}

    assert len({s.due_day for s in dues.values() if s}) > 2
    assert dues["7"] == replay_log(history, "7").card_state
    assert len({s.stability for s in dues.values() if s}) == 1


def test_the_app_spreads_intervals_and_the_button_says_the_one_that_comes() -> None:
    dues = {apply_review(None, grade(4), f"card-{n}").due_day for n in range(40)}
    shown = preview_states_by_rating(None, grade(3), "card-7")[3]

    assert len(dues) > 2
    assert shown == apply_review(None, grade(4), "card-7")


@given(st.integers(3, 2000), st.integers(0, 400), st.text(max_size=8), st.dates())
def test_a_card_and_its_reverse_never_come_back_on_the_same_day(
    days: int, previous: int, card: str, on: dt.date
) -> None:
    card = card.removesuffix("~r")
    ways = [fuzz_interval(days, previous, name, 3, on) for name in (card, f"{card}~r")]

    low, high = compute_fuzz_range(days, previous)
    assert all(low <= way <= high for way in ways)
    if high > low:
        assert ways[0] != ways[1]


@given(
    st.text(max_size=8),
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 60)), max_size=9),
    st.sampled_from([0.7, 0.85, 0.9, 0.97]),
)
def test_a_better_grade_never_comes_back_sooner(
    card: str, history: list[tuple[int, int]], retention: float
) -> None:
    """As Anki has it: Hard, Good and Easy wait ever longer, whatever the spread."""
    day, standing = START, None
    for rating, later in history:
        day += dt.timedelta(days=later)
        standing = apply_review(standing, grade(rating, day), card or "c")
    asked = dataclasses.replace(grade(3, day), desired_retention=retention)

    shown = preview_states_by_rating(standing, asked, card or "c")

    waits = [s.due_day - day for s in shown[1:] if s.state == "review"]
    assert all(one < other for one, other in itertools.pairwise(waits))
    for rating, one in enumerate(shown, 1):
        assert one == apply_review(standing, dataclasses.replace(asked, rating=rating), card or "c")


def test_spread_days_are_level() -> None:
    """Of 4,000 cards learned on one day none of the days to come gets a pile."""
    counts = collections.Counter(fuzz_interval(20, 8, f"card-{n}", 2, START) for n in range(4000))

    low, high = compute_fuzz_range(20, 8)
    share = 4000 / (high - low + 1)
    assert set(counts) == set(range(low, high + 1))
    assert all(0.8 * share < count < 1.25 * share for count in counts.values())


# --- the day ------------------------------------------------------------------------


def test_new_cards_fit_into_the_minutes() -> None:
    assert (
        count_new_cards_still_allowed(
            30, StudyDayCardCounts(cards_still_due=0, cards_reviewed=0, new_cards_begun=0)
        )
        == 15
    )
    assert (
        count_new_cards_still_allowed(
            30, StudyDayCardCounts(cards_still_due=0, cards_reviewed=15, new_cards_begun=15)
        )
        == 0
    )
    assert (
        count_new_cards_still_allowed(
            30, StudyDayCardCounts(cards_still_due=200, cards_reviewed=0, new_cards_begun=0)
        )
        == 0
    )
    assert (
        count_new_cards_still_allowed(
            5, StudyDayCardCounts(cards_still_due=0, cards_reviewed=0, new_cards_begun=0)
        )
        == 2
    )


def test_finishing_the_reviews_does_not_make_room_for_new_cards() -> None:
    before = count_new_cards_still_allowed(
        30, StudyDayCardCounts(cards_still_due=80, cards_reviewed=0, new_cards_begun=0)
    )

    assert (
        count_new_cards_still_allowed(
            30, StudyDayCardCounts(cards_still_due=0, cards_reviewed=80, new_cards_begun=0)
        )
        == before
    )


def test_more_can_be_asked_for() -> None:
    full = StudyDayCardCounts(cards_still_due=200, cards_reviewed=0, new_cards_begun=0)

    assert count_new_cards_still_allowed(30, full, extra_cards=4) == 4
    assert (
        count_new_cards_still_allowed(
            30, dataclasses.replace(full, cards_reviewed=3, new_cards_begun=3), extra_cards=4
        )
        == 1
    )


def test_a_card_is_a_leech_at_the_eighth_lapse_and_every_fourth_after() -> None:
    assert [n for n in range(30) if is_leech_warning_due(n)] == [8, 12, 16, 20, 24, 28]
