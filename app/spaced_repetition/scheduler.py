"""FSRS over study days; manual edits; intervals as text.

Load balancing that counts the cards of other days could not be replayed from one card's log,
because undoing one review would move other cards. Days are leveled by a hash of card and review
instead. A card and its reverse get days of different parity, so they never meet.
"""

import dataclasses
import datetime as dt
import functools
import hashlib
import math
from collections.abc import Iterable
from typing import Literal

import fsrs
from fsrs.scheduler import DEFAULT_PARAMETERS

from app.learner_defaults import DEFAULT_RETENTION

# Half-width of the range: one day, plus these shares of the days in each band.
_FUZZ_BANDS = ((2.5, 7.0, 0.15), (7.0, 20.0, 0.10), (20.0, math.inf, 0.05))

_REVERSE_SUFFIX = "~r"
_MAXIMUM_DAYS = 36500


def compute_fuzz_range(ideal_days: int, previous_days: int = 0) -> tuple[int, int]:
    """Return the shortest and longest interval that may replace `ideal_days`.

    Half-width 1 + 15 % of days 2.5 to 7 + 10 % of 7 to 20 + 5 % above 20. An interval that grows
    past `previous_days` never falls back to it.

    >>> compute_fuzz_range(2), compute_fuzz_range(10), compute_fuzz_range(100)
    ((2, 2), (8, 12), (93, 107))
    """
    if ideal_days < 2.5:
        return ideal_days, ideal_days
    width = 1.0 + sum(
        share * max(0.0, min(ideal_days, end) - start) for start, end, share in _FUZZ_BANDS
    )
    low = max(2, round(ideal_days - width))
    if ideal_days > previous_days:
        low = max(low, min(previous_days + 1, ideal_days))
    high = min(round(ideal_days + width), _MAXIMUM_DAYS)
    return min(low, high), high


def fuzz_interval(
    ideal_days: int,
    previous_days: int,
    card: str,
    earlier_reviews: int,
    study_day: dt.date,
    min_days: int = 0,
) -> int:
    """Return an interval in the range around `ideal_days` that keeps a card apart from its reverse.

    A hash gives each note even or odd days, and its reverse (`~r`) the others. Within range and
    parity all days are equally likely. All rating buttons of one review share one draw, and none
    gives fewer than `min_days` days, so a better rating never comes sooner.
    """
    low, high = compute_fuzz_range(ideal_days, previous_days)
    if min_days > low:
        # One more day, if the range has more than one, so that it holds both parities.
        low, high = min_days, max(high, min_days + (high > low))
    note = card.removesuffix(_REVERSE_SUFFIX)
    side = hashlib.sha256(note.encode()).digest()[0] + (note != card)
    own = [n for n in range(low, high + 1) if (study_day.toordinal() + n + side) % 2 == 0]
    choice = own or [max(ideal_days, min_days)]
    drawn = int.from_bytes(hashlib.sha256(f"{card}:{earlier_reviews}".encode()).digest()[:8])
    return choice[drawn * len(choice) >> 64]


State = Literal["learning", "review", "relearning"]

_FSRS_STATE_BY_NAME: dict[State, fsrs.State] = {
    "learning": fsrs.State.Learning,
    "review": fsrs.State.Review,
    "relearning": fsrs.State.Relearning,
}
_NAME_BY_FSRS_STATE: dict[fsrs.State, State] = {
    value: key for key, value in _FSRS_STATE_BY_NAME.items()
}
_UTC_MIDNIGHT = dt.time(tzinfo=dt.UTC)

LEARNING_STEPS = (dt.timedelta(minutes=1), dt.timedelta(minutes=10))
RELEARNING_STEPS = (dt.timedelta(minutes=10),)


@dataclasses.dataclass(frozen=True, slots=True)
class ReviewEvent:
    """One review: `rating` 1 again, 2 hard, 3 good, 4 easy.

    `day` is its study day. `desired_retention` is the desired retention (0..1) when the card is due again.
    Both are stored in the log, so a replay needs nothing else.
    """

    rating: int
    rated_at: dt.datetime
    day: dt.date
    desired_retention: float = DEFAULT_RETENTION


@dataclasses.dataclass(frozen=True, slots=True)
class CardState:
    """The state of a card after its reviews so far.

    `stability` is in days. `due_day` is the study day from which the card is due, `due_at` the
    moment while it is in (re)learning steps.
    """

    state: State
    step: int | None
    stability: float
    difficulty: float
    due_day: dt.date
    due_at: dt.datetime
    first_day: dt.date
    last_day: dt.date
    last_at: dt.datetime
    reviews: int = 1
    lapses: int = 0


def apply_review(before: CardState | None, review: ReviewEvent, card: str = "") -> CardState:
    """Return the card state after one more review; `before` is None for a new card.

    Equal to the reference implementation (py-fsrs, FSRS-6) with elapsed time counted in study days.
    Intervals of three days and more are fuzzed, always in the same way for the same review of a
    card on the same study day; without `card` they are not.
    """
    scheduler = _fsrs_scheduler(review.desired_retention)
    day = _start_of_day(review.day)
    moved, _ = scheduler.review_card(
        _to_fsrs_card(before, day), fsrs.Rating(review.rating), review_datetime=day
    )
    wait = moved.due - day
    state = _NAME_BY_FSRS_STATE[moved.state]
    if card and state == "review":
        wait = dt.timedelta(days=_fuzz_interval_by_rating(before, review, card))
    lapsed = before is not None and before.state == "review" and review.rating == 1
    return CardState(
        state=state,
        step=moved.step,
        stability=moved.stability or 0.0,
        difficulty=moved.difficulty or 0.0,
        due_day=review.day + wait if state == "review" else review.day,
        due_at=review.rated_at + wait,
        first_day=before.first_day if before else review.day,
        last_day=review.day,
        last_at=review.rated_at,
        reviews=(before.reviews if before else 0) + 1,
        lapses=(before.lapses if before else 0) + lapsed,
    )


def _fuzz_interval_by_rating(before: CardState | None, review: ReviewEvent, card: str) -> int:
    """Return the fuzzed interval in days. Hard, good and easy give increasing intervals."""
    scheduler, day = _fsrs_scheduler(review.desired_retention), _start_of_day(review.day)
    previous = (before.due_day - before.last_day).days if before else 0
    earlier_reviews = before.reviews if before else 0
    days = 0
    for rating in range(fsrs.Rating.Hard, review.rating + 1):
        moved, _ = scheduler.review_card(
            _to_fsrs_card(before, day), fsrs.Rating(rating), review_datetime=day
        )
        if _NAME_BY_FSRS_STATE[moved.state] == "review":
            wait = (moved.due - day).days
            minimum = days + 1 if days else 0
            days = fuzz_interval(wait, previous, card, earlier_reviews, review.day, minimum)
    return min(days, _MAXIMUM_DAYS)


def preview_states_by_rating(
    before: CardState | None, event: ReviewEvent, card: str = ""
) -> tuple[CardState, ...]:
    """Return the state after again, hard, good and easy; `event.rating` is ignored."""
    return tuple(
        apply_review(before, dataclasses.replace(event, rating=rating), card)
        for rating in (1, 2, 3, 4)
    )


_FORGETTING_CURVE_DECAY = -DEFAULT_PARAMETERS[20]
_FORGETTING_CURVE_FACTOR = 0.9 ** (1 / _FORGETTING_CURVE_DECAY) - 1


def compute_retrievability_after(days: int, stability: float) -> float:
    """Return the probability (0..1) of recall some days after the last review.

    R = (1 + F·t/S)^(−w20) with F = 0.9^(−1/w20) − 1.
    """
    return math.pow(1 + _FORGETTING_CURVE_FACTOR * days / stability, _FORGETTING_CURVE_DECAY)


def compute_retrievability_on_day(state: CardState, day: dt.date) -> float:
    """Return the probability (0..1) that the card is still recalled on a study day."""
    return compute_retrievability_after(max(0, (day - state.last_day).days), state.stability)


@functools.lru_cache(maxsize=256)
def _fsrs_scheduler(retention: float) -> fsrs.Scheduler:
    return fsrs.Scheduler(
        desired_retention=retention,
        learning_steps=LEARNING_STEPS,
        relearning_steps=RELEARNING_STEPS,
        maximum_interval=_MAXIMUM_DAYS,
        enable_fuzzing=False,
    )


def _start_of_day(day: dt.date) -> dt.datetime:
    # The reference counts periods of 24 hours between moments. Given the same moment of each study
    # day, it counts study days, independent of hour, time zone and daylight saving.
    return dt.datetime.combine(day, _UTC_MIDNIGHT)


def _to_fsrs_card(state: CardState | None, day: dt.datetime) -> fsrs.Card:
    # Pass an id, because the package sleeps to make one.
    if state is None:
        return fsrs.Card(card_id=1, due=day)
    return fsrs.Card(
        card_id=1,
        state=_FSRS_STATE_BY_NAME[state.state],
        step=state.step,
        stability=state.stability,
        difficulty=state.difficulty,
        due=day,
        last_review=_start_of_day(state.last_day),
    )


Kind = Literal["bury", "due", "forget"]


@dataclasses.dataclass(frozen=True, slots=True)
class ManualEdit:
    """One manual edit; `until_day` is the study day of a bury or a due date."""

    kind: Kind
    until_day: dt.date | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class ReplayedCard:
    """The result of replaying a card's log; `manual_due_day` is a due date set by hand.

    `card_state` is None for a card without a review, or without one since it was forgotten.
    """

    card_state: CardState | None = None
    manual_due_day: dt.date | None = None


def apply_manual_edit(before: ReplayedCard, edit: ManualEdit) -> ReplayedCard:
    """Return the card after a manual edit. Only "forget" changes its memory.

    A buried card is never due sooner than before.
    """
    if edit.kind == "forget" or edit.until_day is None:
        return ReplayedCard()
    until, card_state = edit.until_day, before.card_state
    if card_state is None:
        return ReplayedCard(None, until)
    if edit.kind == "bury":
        until = max(until, card_state.due_day)
    return ReplayedCard(dataclasses.replace(card_state, due_day=until), until)


def replay_log(log: Iterable[ReviewEvent | ManualEdit], card: str = "") -> ReplayedCard:
    now = ReplayedCard()
    for one in log:
        if isinstance(one, ManualEdit):
            now = apply_manual_edit(now, one)
        else:
            now = ReplayedCard(apply_review(now.card_state, one, card))
    return now


def explain_invalid_due_date(due_day: dt.date, today: dt.date, exam_day: dt.date | None) -> str:
    """Return why a card cannot be due on `due_day`; empty if it can.

    >>> explain_invalid_due_date(dt.date(2026, 6, 1), dt.date(2026, 6, 2), None)
    'That day is over. Choose today or a later day.'
    """
    if due_day < today:
        return "That day is over. Choose today or a later day."
    last = compute_last_settable_due_day(today, exam_day)
    if due_day <= last:
        return ""
    if exam_day is None or exam_day <= today:
        return f"That is too far away. Choose a day until {last:%B %-d, %Y}."
    return (
        f"Your exam is on {exam_day:%B %-d, %Y}. Choose a day until {last:%B %-d, %Y}, so"
        " that the card is asked before it."
    )


def compute_last_settable_due_day(today: dt.date, exam_day: dt.date | None) -> dt.date:
    """Return the last day that can be set: the one before the exam, or ten years ahead."""
    if exam_day is None or exam_day <= today:
        return today + dt.timedelta(days=3652)
    return exam_day - dt.timedelta(days=1)


LEECH_LAPSES = 8
"""Lapses of one learner at one card from which it is a leech."""
_WARN_EVERY = 4


def is_leech_warning_due(lapses: int) -> bool:
    """Return whether to warn the learner at this lapse that the card does not stick.

    True at the eighth lapse, and at every fourth after it.
    """
    return lapses >= LEECH_LAPSES and (lapses - LEECH_LAPSES) % _WARN_EVERY == 0


OLDEST_REVIEW_AGE = dt.timedelta(days=30)


def is_rating_too_old(rated_at: dt.datetime, now: dt.datetime) -> bool:
    """Return whether a rating was given too long ago to be accepted.

    After 30 days a wrong clock is more likely than a browser that was offline.
    """
    return now - rated_at > OLDEST_REVIEW_AGE


def clamp_review_time(
    rated_at: dt.datetime, now: dt.datetime, last_review: dt.datetime | None
) -> dt.datetime:
    """Return the moment to log for a rating given at `rated_at` and received at `now`.

    Never in the future, whatever the device's clock says, and never before the card's last review,
    because the log is replayed in its order. If the last review is itself in the future, its moment
    is used.
    """
    moment = min(rated_at, now)
    return moment if last_review is None else max(moment, last_review)


NBSP = "\u00a0"


def format_interval(state: CardState, review: ReviewEvent) -> str:
    """Return the time until the card is due, for its rating button.

    A card in its learning steps comes back in at most that time: at once if it is the last one.
    """
    if state.state != "review":
        return f"≤{NBSP}{format_wait(state.due_at - review.rated_at)}"
    return format_days((state.due_day - review.day).days)


def format_days(days: int) -> str:
    """Return a number of days in the largest readable unit.

    >>> [format_days(n).replace(NBSP, " ") for n in (1, 20, 75, 400)]
    ['1 day', '20 days', '2.5 months', '1.1 years']
    """
    if days < 60:
        return f"{days}{NBSP}{'day' if days == 1 else 'days'}"
    if days < 365:
        return f"{_format_one_decimal(days / 30.4)}{NBSP}months"
    years = _format_one_decimal(days / 365.25)
    return f"{years}{NBSP}{'year' if years == '1' else 'years'}"


def format_wait(wait: dt.timedelta) -> str:
    """Return a wait in minutes or hours, at least one minute."""
    minutes = max(1, round(wait.total_seconds() / 60))
    if minutes < 60:
        return f"{minutes}{NBSP}min"
    if minutes < 24 * 60:
        return f"{_format_one_decimal(minutes / 60)}{NBSP}h"
    return format_days(round(minutes / 1440))


def _format_one_decimal(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
