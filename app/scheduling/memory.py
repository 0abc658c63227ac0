"""The memory of a card: FSRS-6, told how many study days have passed."""

import dataclasses
import datetime as dt
import functools
from typing import Literal

import fsrs
from fsrs.scheduler import DEFAULT_PARAMETERS

from app.scheduling.fuzz import fuzz_interval
from app.scheduling.retention import RETENTION

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
