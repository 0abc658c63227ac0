"""FSRS over study days; manual edits.

A balance that looks at how many cards other days hold could not be replayed from the
log of one card: undoing a grade would move others. So the days are leveled by a hash
of card and review, and a card and its reverse get days of different parity, which
never meet.
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

from app.clock import RETENTION

# Half-width of the range: one day, plus these shares of the days in each band.
_BANDS = ((2.5, 7.0, 0.15), (7.0, 20.0, 0.10), (20.0, math.inf, 0.05))

_REVERSE = "~r"


def fuzz_range(days: int, previous: int = 0, maximum: int = 36500) -> tuple[int, int]:
    """The shortest and longest interval that may stand for `days`.

    Half-width 1 + 15 % of days 2.5 to 7 + 10 % of 7 to 20 + 5 % above 20. An interval
    that grows past `previous` never falls back to it.

    >>> fuzz_range(2), fuzz_range(10), fuzz_range(100)
    ((2, 2), (8, 12), (93, 107))
    """
    if days < 2.5:
        return days, days
    width = 1.0 + sum(share * max(0.0, min(days, end) - start) for start, end, share in _BANDS)
    low = max(2, round(days - width))
    if days > previous:
        low = max(low, min(previous + 1, days))
    high = min(round(days + width), maximum)
    return min(low, high), high


def fuzz_interval(
    days: int, previous: int, seed: tuple[str, int], on: dt.date, least: int = 0
) -> int:
    """An interval in the range around `days` that keeps a card from its reverse.

    `seed` is the card and how many reviews came before, `on` the study day. Notes
    take even or odd days by their hash, the reverse (`~r`) the other ones; within
    the range and the parity all days are equally likely. One draw serves all buttons
    of a turn, and none gives fewer than `least` days, so that a better grade never
    comes back sooner.
    """
    card, turn = seed
    low, high = fuzz_range(days, previous)
    if least > low:
        # One day more, where there is a range at all, holds both parities.
        low, high = least, max(high, least + (high > low))
    note = card.removesuffix(_REVERSE)
    side = hashlib.sha256(note.encode()).digest()[0] + (note != card)
    own = [n for n in range(low, high + 1) if (on.toordinal() + n + side) % 2 == 0]
    choice = own or [max(days, least)]
    drawn = int.from_bytes(hashlib.sha256(f"{card}:{turn}".encode()).digest()[:8])
    return choice[drawn * len(choice) >> 64]


State = Literal["learning", "review", "relearning"]

_STATES: dict[State, fsrs.State] = {
    "learning": fsrs.State.Learning,
    "review": fsrs.State.Review,
    "relearning": fsrs.State.Relearning,
}
_NAMES: dict[fsrs.State, State] = {value: key for key, value in _STATES.items()}
_TURN = dt.time(tzinfo=dt.UTC)
_HARD = 2


@dataclasses.dataclass(frozen=True, slots=True)
class SchedulerPolicy:
    """How intervals are made: steps before and after a lapse, the cap, fuzz.

    `fuzz` spreads intervals of three days and more a little, so that cards learned
    together do not stay together; the same card at the same review of the same study
    day always gets the same one. `parameters` are the 21 numbers of FSRS-6.
    """

    learning_steps: tuple[dt.timedelta, ...] = (
        dt.timedelta(minutes=1),
        dt.timedelta(minutes=10),
    )
    relearning_steps: tuple[dt.timedelta, ...] = (dt.timedelta(minutes=10),)
    maximum_days: int = 36500
    fuzz: bool = False
    parameters: tuple[float, ...] = DEFAULT_PARAMETERS


POLICY = SchedulerPolicy(fuzz=True)
"""The policy of the app. Without a card named there is nothing to spread."""


@dataclasses.dataclass(frozen=True, slots=True)
class ReviewEvent:
    """One answer: `rating` 1 again, 2 hard, 3 good, 4 easy.

    `day` is the study day it belongs to, `retention` the recall wanted when the card
    comes back (0..1); both are part of the log, so a replay needs nothing else.
    """

    rating: int
    at: dt.datetime
    day: dt.date
    retention: float = RETENTION


@dataclasses.dataclass(frozen=True, slots=True)
class CardState:
    """What the answers so far amount to.

    `stability` is in days; `due_day` is the study day from which the card is due,
    and `due_at` the moment while it is in (re)learning steps.
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


def apply_review(
    before: CardState | None, grade: ReviewEvent, card: str = "", policy: SchedulerPolicy = POLICY
) -> CardState:
    """The standing after one more answer; `before` is None for a new card.

    Equal to the reference implementation (py-fsrs, FSRS-6) with the elapsed time
    counted in study days. `card` seeds the fuzz; without one there is none.
    """
    scheduler = _scheduler(policy, grade.retention)
    day = _midnight(grade.day)
    moved, _ = scheduler.review_card(
        _card(before, day), fsrs.Rating(grade.rating), review_datetime=day
    )
    wait = moved.due - day
    state = _NAMES[moved.state]
    if policy.fuzz and card and state == "review":
        wait = dt.timedelta(days=_spread(before, grade, card, policy))
    lapsed = before is not None and before.state == "review" and grade.rating == 1
    return CardState(
        state=state,
        step=moved.step,
        stability=moved.stability or 0.0,
        difficulty=moved.difficulty or 0.0,
        due_day=grade.day + wait if state == "review" else grade.day,
        due_at=grade.at + wait,
        first_day=before.first_day if before else grade.day,
        last_day=grade.day,
        last_at=grade.at,
        reviews=(before.reviews if before else 0) + 1,
        lapses=(before.lapses if before else 0) + lapsed,
    )


def _spread(
    before: CardState | None, grade: ReviewEvent, card: str, policy: SchedulerPolicy
) -> int:
    """The days until a card comes back, spread: after hard, good, easy ever more."""
    scheduler, day = _scheduler(policy, grade.retention), _midnight(grade.day)
    previous = (before.due_day - before.last_day).days if before else 0
    seed = card, before.reviews if before else 0
    days = 0
    for rating in range(_HARD, grade.rating + 1):
        moved, _ = scheduler.review_card(
            _card(before, day), fsrs.Rating(rating), review_datetime=day
        )
        if _NAMES[moved.state] == "review":
            wait = (moved.due - day).days
            days = fuzz_interval(wait, previous, seed, grade.day, days + 1 if days else 0)
    return min(days, policy.maximum_days)


def preview_ratings(
    before: CardState | None, asked: ReviewEvent, card: str = ""
) -> tuple[CardState, CardState, CardState, CardState]:
    """What each of the four grades would lead to; `asked.rating` does not matter."""
    again, hard, good, easy = (
        apply_review(before, dataclasses.replace(asked, rating=rating), card)
        for rating in (1, 2, 3, 4)
    )
    return again, hard, good, easy


def retrievability(standing: CardState, day: dt.date, policy: SchedulerPolicy = POLICY) -> float:
    """The probability (0..1) that the card is still known on a study day.

    R = (1 + F·t/S)^(−w20) with F = 0.9^(−1/w20) − 1, t days since the last answer.
    """
    scheduler = _scheduler(policy, RETENTION)
    moment = _midnight(day)
    return float(scheduler.get_card_retrievability(_card(standing, moment), moment))


@functools.lru_cache(maxsize=256)
def _scheduler(policy: SchedulerPolicy, retention: float) -> fsrs.Scheduler:
    return fsrs.Scheduler(
        parameters=policy.parameters,
        desired_retention=retention,
        learning_steps=policy.learning_steps,
        relearning_steps=policy.relearning_steps,
        maximum_interval=policy.maximum_days,
        enable_fuzzing=False,
    )


def _midnight(day: dt.date) -> dt.datetime:
    # The reference counts periods of 24 hours between moments. Told the same moment
    # of each study day it counts study days, whatever the hour, zone or season.
    return dt.datetime.combine(day, _TURN)


def _card(standing: CardState | None, day: dt.datetime) -> fsrs.Card:
    # An id is given because the package would sleep to make one.
    if standing is None:
        return fsrs.Card(card_id=1, due=day)
    return fsrs.Card(
        card_id=1,
        state=_STATES[standing.state],
        step=standing.step,
        stability=standing.stability,
        difficulty=standing.difficulty,
        due=day,
        last_review=_midnight(standing.last_day),
    )


Kind = Literal["bury", "due", "forget"]


@dataclasses.dataclass(frozen=True, slots=True)
class ManualEdit:
    """One thing that was set; `until` is the study day of a bury or a due date."""

    kind: Kind
    until: dt.date | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class ReplayedCard:
    """Where a card stands after its log; `until` is a day that was set by hand.

    `standing` is None for a card without a grade, or with none since it was forgotten.
    """

    standing: CardState | None = None
    until: dt.date | None = None


def apply_manual_edit(before: ReplayedCard, act: ManualEdit) -> ReplayedCard:
    """What an act does. Memory is left alone, unless all of it is forgotten.

    A card that is buried comes no sooner than it would have.
    """
    if act.kind == "forget" or act.until is None:
        return ReplayedCard()
    until, standing = act.until, before.standing
    if standing is None:
        return ReplayedCard(None, until)
    if act.kind == "bury":
        until = max(until, standing.due_day)
    return ReplayedCard(dataclasses.replace(standing, due_day=until), until)


def replay_log(log: Iterable[ReviewEvent | ManualEdit], card: str = "") -> ReplayedCard:
    """Where a card stands after grades and acts, in their order."""
    now = ReplayedCard()
    for one in log:
        if isinstance(one, ManualEdit):
            now = apply_manual_edit(now, one)
        else:
            now = ReplayedCard(apply_review(now.standing, one, card))
    return now


def due_date_error(day: dt.date, today: dt.date, exam: dt.date | None) -> str:
    """Why a card cannot be due on `day`; empty where it can.

    >>> due_date_error(dt.date(2026, 6, 1), dt.date(2026, 6, 2), None)
    'That day is over. Choose today or a later day.'
    """
    if day < today:
        return "That day is over. Choose today or a later day."
    last = last_day(today, exam)
    if day <= last:
        return ""
    if exam is None or exam <= today:
        return f"That is too far away. Choose a day until {last:%B %-d, %Y}."
    return (
        f"Your exam is on {exam:%B %-d, %Y}. Choose a day until {last:%B %-d, %Y}, so"
        " that the card is asked before it."
    )


def last_day(today: dt.date, exam: dt.date | None) -> dt.date:
    """The last day that can be set: the one before the exam, or ten years ahead."""
    if exam is None or exam <= today:
        return today + dt.timedelta(days=3652)
    return exam - dt.timedelta(days=1)


LEECH = 8
_WARN_EVERY = 4


def is_leech(lapses: int) -> bool:
    """Whether this lapse makes the learner hear that the card does not stick.

    At the eighth lapse, and at every fourth after it.
    """
    return lapses >= LEECH and (lapses - LEECH) % _WARN_EVERY == 0


OLDEST = dt.timedelta(days=30)


def is_too_old(given: dt.datetime, now: dt.datetime) -> bool:
    """Whether a grade was given so long ago that it says nothing any more.

    After 30 days a clock that was wrong is more likely than a browser that waited.
    """
    return now - given > OLDEST


def settled(given: dt.datetime, now: dt.datetime, last: dt.datetime | None) -> dt.datetime:
    """The moment that the log keeps for a grade given at `given` and read at `now`.

    Never in the future, whatever the clock of the device says, and never before the
    last review of the card, for the log is replayed in its order. Where the last
    review lies in the future itself, its moment is kept.
    """
    moment = min(given, now)
    return moment if last is None else max(moment, last)


NBSP = "\u00a0"


def interval_label(standing: CardState, grade: ReviewEvent) -> str:
    """The time until a card comes back, as the grade button shows it."""
    if standing.state != "review":
        return minutes_words(standing.due_at - grade.at)
    return days_label((standing.due_day - grade.day).days)


def days_label(days: int) -> str:
    """A number of days in the largest unit that stays readable.

    >>> [days_label(n).replace(NBSP, " ") for n in (1, 20, 75, 400)]
    ['1 day', '20 days', '2.5 months', '1.1 years']
    """
    if days < 60:
        return f"{days}{NBSP}{'day' if days == 1 else 'days'}"
    if days < 365:
        return f"{_short(days / 30.4)}{NBSP}months"
    years = _short(days / 365.25)
    return f"{years}{NBSP}{'year' if years == '1' else 'years'}"


def minutes_words(wait: dt.timedelta) -> str:
    """A time of minutes or hours, at least one minute."""
    minutes = max(1, round(wait.total_seconds() / 60))
    if minutes < 60:
        return f"{minutes}{NBSP}min"
    if minutes < 24 * 60:
        return f"{_short(minutes / 60)}{NBSP}h"
    return days_label(round(minutes / 1440))


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
