"""FSRS over study days; its formulas in closed form for the planner; manual edits.

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
_BANDS = ((2.5, 7.0, 0.15), (7.0, 20.0, 0.10), (20.0, math.inf, 0.05))

_REVERSE = "~r"


def fuzz_range(days: int, previous: int = 0, maximum: int = 36500) -> tuple[int, int]:
    """Return the shortest and longest interval that may replace `days`.

    Half-width 1 + 15 % of days 2.5 to 7 + 10 % of 7 to 20 + 5 % above 20. An interval that grows
    past `previous` never falls back to it.

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
    days: int, previous: int, seed: tuple[str, int], study_day: dt.date, minimum: int = 0
) -> int:
    """Return an interval in the range around `days` that keeps a card apart from its reverse.

    `seed` is the card and the number of earlier reviews, `study_day` the study day. A hash gives each note
    even or odd days, and its reverse (`~r`) the others. Within range and parity all days are
    equally likely. All rating buttons of one review share one draw, and none gives fewer than
    `minimum` days, so a better rating never comes sooner.
    """
    card, turn = seed
    low, high = fuzz_range(days, previous)
    if minimum > low:
        # One more day, if the range has more than one, so that it holds both parities.
        low, high = minimum, max(high, minimum + (high > low))
    note = card.removesuffix(_REVERSE)
    side = hashlib.sha256(note.encode()).digest()[0] + (note != card)
    own = [n for n in range(low, high + 1) if (study_day.toordinal() + n + side) % 2 == 0]
    choice = own or [max(days, minimum)]
    drawn = int.from_bytes(hashlib.sha256(f"{card}:{turn}".encode()).digest()[:8])
    return choice[drawn * len(choice) >> 64]


State = Literal["learning", "review", "relearning"]

_STATES: dict[State, fsrs.State] = {
    "learning": fsrs.State.Learning,
    "review": fsrs.State.Review,
    "relearning": fsrs.State.Relearning,
}
_NAMES: dict[fsrs.State, State] = {value: key for key, value in _STATES.items()}
_MIDNIGHT = dt.time(tzinfo=dt.UTC)


@dataclasses.dataclass(frozen=True, slots=True)
class SchedulerConfig:
    """How intervals are computed: steps before and after a lapse, the maximum, fuzz.

    `fuzz` spreads intervals of three days and more, so that cards learned together do not stay
    together. The same review of a card on the same study day always gets the same interval.
    `parameters` are the 21 numbers of FSRS-6.
    """

    learning_steps: tuple[dt.timedelta, ...] = (dt.timedelta(minutes=1), dt.timedelta(minutes=10))
    relearning_steps: tuple[dt.timedelta, ...] = (dt.timedelta(minutes=10),)
    maximum_days: int = 36500
    fuzz: bool = False
    parameters: tuple[float, ...] = DEFAULT_PARAMETERS


POLICY = SchedulerConfig(fuzz=True)
"""The policy of the app. Calls without a card id are not fuzzed."""


@dataclasses.dataclass(frozen=True, slots=True)
class ReviewEvent:
    """One review: `rating` 1 again, 2 hard, 3 good, 4 easy.

    `day` is its study day. `retention` is the desired retention (0..1) when the card is due again.
    Both are stored in the log, so a replay needs nothing else.
    """

    rating: int
    at: dt.datetime
    day: dt.date
    retention: float = DEFAULT_RETENTION


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


def apply_review(
    before: CardState | None, review: ReviewEvent, card: str = "", policy: SchedulerConfig = POLICY
) -> CardState:
    """Return the card state after one more review; `before` is None for a new card.

    Equal to the reference implementation (py-fsrs, FSRS-6) with elapsed time counted in study days.
    `card` seeds the fuzz; without it there is none.
    """
    scheduler = _fsrs_scheduler(policy, review.retention)
    day = _start_of_day(review.day)
    moved, _ = scheduler.review_card(
        _to_fsrs_card(before, day), fsrs.Rating(review.rating), review_datetime=day
    )
    wait = moved.due - day
    state = _NAMES[moved.state]
    if policy.fuzz and card and state == "review":
        wait = dt.timedelta(days=_fuzz_interval_by_rating(before, review, card, policy))
    lapsed = before is not None and before.state == "review" and review.rating == 1
    return CardState(
        state=state,
        step=moved.step,
        stability=moved.stability or 0.0,
        difficulty=moved.difficulty or 0.0,
        due_day=review.day + wait if state == "review" else review.day,
        due_at=review.at + wait,
        first_day=before.first_day if before else review.day,
        last_day=review.day,
        last_at=review.at,
        reviews=(before.reviews if before else 0) + 1,
        lapses=(before.lapses if before else 0) + lapsed,
    )


def _fuzz_interval_by_rating(
    before: CardState | None, grade: ReviewEvent, card: str, policy: SchedulerConfig
) -> int:
    """Return the fuzzed interval in days. Hard, good and easy give increasing intervals."""
    scheduler, day = _fsrs_scheduler(policy, grade.retention), _start_of_day(grade.day)
    previous = (before.due_day - before.last_day).days if before else 0
    seed = card, before.reviews if before else 0
    days = 0
    for rating in range(_HARD, grade.rating + 1):
        moved, _ = scheduler.review_card(
            _to_fsrs_card(before, day), fsrs.Rating(rating), review_datetime=day
        )
        if _NAMES[moved.state] == "review":
            wait = (moved.due - day).days
            days = fuzz_interval(wait, previous, seed, grade.day, days + 1 if days else 0)
    return min(days, policy.maximum_days)


def preview_ratings(
    before: CardState | None, event: ReviewEvent, card: str = ""
) -> tuple[CardState, CardState, CardState, CardState]:
    """Return the state after each of the four ratings; `asked.rating` is ignored."""
    again, hard, good, easy = (
        apply_review(before, dataclasses.replace(event, rating=rating), card)
        for rating in (1, 2, 3, 4)
    )
    return again, hard, good, easy


def retrievability(state: CardState, day: dt.date) -> float:
    """Return the probability (0..1) that the card is still recalled on a study day.

    R = (1 + F·t/S)^(−w20) with F = 0.9^(−1/w20) − 1, t days since the last review.
    """
    scheduler = _fsrs_scheduler(POLICY, DEFAULT_RETENTION)
    moment = _start_of_day(day)
    return float(scheduler.get_card_retrievability(_to_fsrs_card(state, moment), moment))


@functools.lru_cache(maxsize=256)
def _fsrs_scheduler(policy: SchedulerConfig, retention: float) -> fsrs.Scheduler:
    return fsrs.Scheduler(
        parameters=policy.parameters,
        desired_retention=retention,
        learning_steps=policy.learning_steps,
        relearning_steps=policy.relearning_steps,
        maximum_interval=policy.maximum_days,
        enable_fuzzing=False,
    )


def _start_of_day(day: dt.date) -> dt.datetime:
    # The reference counts periods of 24 hours between moments. Given the same moment of each study
    # day, it counts study days, independent of hour, time zone and daylight saving.
    return dt.datetime.combine(day, _MIDNIGHT)


def _to_fsrs_card(state: CardState | None, day: dt.datetime) -> fsrs.Card:
    # Pass an id, because the package sleeps to make one.
    if state is None:
        return fsrs.Card(card_id=1, due=day)
    return fsrs.Card(
        card_id=1,
        state=_STATES[state.state],
        step=state.step,
        stability=state.stability,
        difficulty=state.difficulty,
        due=day,
        last_review=_start_of_day(state.last_day),
    )


Kind = Literal["bury", "due", "forget"]


@dataclasses.dataclass(frozen=True, slots=True)
class ManualEdit:
    """One manual edit; `until` is the study day of a bury or a due date."""

    kind: Kind
    until: dt.date | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class ReplayedCard:
    """The result of replaying a card's log; `until` is a manually set day.

    `standing` is None for a card without a review, or without one since it was forgotten.
    """

    standing: CardState | None = None
    until: dt.date | None = None


def apply_manual_edit(before: ReplayedCard, act: ManualEdit) -> ReplayedCard:
    """Return the card after a manual edit. Only "forget" changes its memory.

    A buried card is never due sooner than before.
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
    """Return a card after its reviews and manual edits, applied in order."""
    now = ReplayedCard()
    for one in log:
        if isinstance(one, ManualEdit):
            now = apply_manual_edit(now, one)
        else:
            now = ReplayedCard(apply_review(now.standing, one, card))
    return now


def explain_invalid_due_date(day: dt.date, today: dt.date, exam: dt.date | None) -> str:
    """Return why a card cannot be due on `day`; empty if it can.

    >>> explain_invalid_due_date(dt.date(2026, 6, 1), dt.date(2026, 6, 2), None)
    'That day is over. Choose today or a later day.'
    """
    if day < today:
        return "That day is over. Choose today or a later day."
    last = latest_allowed_due_day(today, exam)
    if day <= last:
        return ""
    if exam is None or exam <= today:
        return f"That is too far away. Choose a day until {last:%B %-d, %Y}."
    return (
        f"Your exam is on {exam:%B %-d, %Y}. Choose a day until {last:%B %-d, %Y}, so"
        " that the card is asked before it."
    )


def latest_allowed_due_day(today: dt.date, exam: dt.date | None) -> dt.date:
    """Return the last day that can be set: the one before the exam, or ten years ahead."""
    if exam is None or exam <= today:
        return today + dt.timedelta(days=3652)
    return exam - dt.timedelta(days=1)


LEECH_LAPSES = 8
"""Lapses of one learner at one card from which it is a leech."""
_WARN_EVERY = 4


def is_leech_warning_due(lapses: int) -> bool:
    """Return whether to warn the learner at this lapse that the card does not stick.

    True at the eighth lapse, and at every fourth after it.
    """
    return lapses >= LEECH_LAPSES and (lapses - LEECH_LAPSES) % _WARN_EVERY == 0


OLDEST = dt.timedelta(days=30)


def is_rating_too_old(rated_at: dt.datetime, now: dt.datetime) -> bool:
    """Return whether a rating was given too long ago to be accepted.

    After 30 days a wrong clock is more likely than a browser that was offline.
    """
    return now - rated_at > OLDEST


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
        return f"≤{NBSP}{format_wait(state.due_at - review.at)}"
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


MemoryState = tuple[float, float]
"""Stability in days and difficulty (1..10)."""

AT_STABILITY = 0.9
"""The retrievability after a number of days equal to the stability, by the definition of FSRS."""

_AGAIN, _HARD, _GOOD, _EASY = 1, 2, 3, 4
_LEAST = 0.001


class FsrsFormulas:
    """The formulas of FSRS-6 in closed form under one policy, with their constants precomputed.

    The reference implementation (py-fsrs) updates a whole card at each review. The planner needs
    thousands of simulated reviews, so it uses the formulas alone. A test compares both.
    """

    __slots__ = (
        "_decay",
        "_easy_start",
        "_factor",
        "_growth",
        "_maximum",
        "_relearning",
        "_same_day",
        "_steps",
        "_w",
    )

    def __init__(self, policy: SchedulerConfig = POLICY) -> None:
        w = policy.parameters
        self._w = w
        self._decay = -w[20]
        self._factor = math.pow(AT_STABILITY, 1 / self._decay) - 1
        self._growth = math.exp(w[8])
        self._same_day = math.exp(w[17] * w[18])
        self._easy_start = w[4] - math.exp(w[5] * (_EASY - 1)) + 1
        self._steps = len(policy.learning_steps)
        self._relearning = len(policy.relearning_steps)
        self._maximum = policy.maximum_days

    def recall_probability(self, days: float, stability: float) -> float:
        """Return the probability of recall (0..1) `days` after the last review.

        R = (1 + F·t/S)^(−w20) with F = 0.9^(−1/w20) − 1.
        """
        return math.pow(1 + self._factor * days / stability, self._decay)

    def interval_days(self, stability: float, retention: float = DEFAULT_RETENTION) -> int:
        """Return the whole days until the probability of recall falls to `retention`."""
        days = round(stability / self._factor * (math.pow(retention, 1 / self._decay) - 1))
        return min(max(days, 1), self._maximum)

    def after_success(self, trace: MemoryState, recall: float, rating: int = _GOOD) -> MemoryState:
        """Return the trace after a passed review, a day or more after the last one."""
        stability = self.stability_after_success(trace, recall, rating)
        return stability, self.next_difficulty(trace[1], rating)

    def after_lapse_before_relearning(self, trace: MemoryState, recall: float) -> MemoryState:
        """Return the trace after “again”, a day or more after the last review, before relearning."""
        return self.stability_after_lapse(trace, recall), self.next_difficulty(trace[1], _AGAIN)

    def after_lapse_and_relearning(self, trace: MemoryState, recall: float) -> MemoryState:
        """Return the trace after “again” and the relearning steps of that day, all passed."""
        trace = self.after_lapse_before_relearning(trace, recall)
        for _ in range(self._relearning):
            trace = self.after_same_day_good(trace)
        return trace

    def after_same_day_good(self, trace: MemoryState) -> MemoryState:
        """Return the trace after another review on the same study day that was good."""
        return self.compute_same_day_stability(trace[0], _GOOD), self.next_difficulty(
            trace[1], _GOOD
        )

    def stability_after_success(
        self, trace: MemoryState, recall: float, rating: int = _GOOD
    ) -> float:
        """Return the stability after a passed review.

        S' = S·(1 + e^w8·(11 − D)·S^(−w9)·(e^(w10·(1 − R)) − 1)·hard·easy).
        """
        w, (stability, difficulty) = self._w, trace
        grown = self._growth * (11 - difficulty) * math.pow(stability, -w[9])
        grown *= math.exp((1 - recall) * w[10]) - 1
        if rating == _HARD:
            grown *= w[15]
        elif rating == _EASY:
            grown *= w[16]
        return max(stability * (1 + grown), _LEAST)

    def stability_after_lapse(self, trace: MemoryState, recall: float) -> float:
        """Return the stability after a lapse.

        S' = min(w11·D^(−w12)·((S + 1)^w13 − 1)·e^(w14·(1 − R)), S ÷ e^(w17·w18)).
        """
        w, (stability, difficulty) = self._w, trace
        left = w[11] * math.pow(difficulty, -w[12]) * (math.pow(stability + 1, w[13]) - 1)
        left *= math.exp((1 - recall) * w[14])
        return max(min(left, stability / self._same_day), _LEAST)

    def compute_same_day_stability(self, stability: float, rating: int = _GOOD) -> float:
        """Return the stability after another review on the same study day.

        S' = S·e^(w17·(G − 3 + w18))·S^(−w19), never less for hard, good and easy.
        """
        w = self._w
        change = math.exp(w[17] * (rating - 3 + w[18])) * math.pow(stability, -w[19])
        if rating != _AGAIN:
            change = max(change, 1.0)
        return max(stability * change, _LEAST)

    def after_first_day(self, rating: int) -> MemoryState:
        """Return the trace of a new card after its first day: `rating`, then the steps passed.

        S0 = w[G − 1], D0 = w4 − e^(w5·(G − 1)) + 1.
        """
        w = self._w
        difficulty = w[4] - math.exp(w[5] * (rating - 1)) + 1
        trace = max(w[rating - 1], _LEAST), min(max(difficulty, 1.0), 10.0)
        left = {_GOOD: self._steps - 1, _EASY: 0}.get(rating, self._steps)
        for _ in range(left):
            trace = self.after_same_day_good(trace)
        return trace

    def next_difficulty(self, difficulty: float, rating: int) -> float:
        """Return the difficulty (1..10) after a review.

        D' = w7·D0(easy) + (1 − w7)·(D − w6·(G − 3)·(10 − D) ÷ 9).
        """
        w = self._w
        moved = difficulty - (10.0 - difficulty) * w[6] * (rating - 3) / 9.0
        moved = w[7] * self._easy_start + (1 - w[7]) * moved
        return min(max(moved, 1.0), 10.0)


@functools.lru_cache(maxsize=16)
def fsrs_formulas() -> FsrsFormulas:
    return FsrsFormulas()
