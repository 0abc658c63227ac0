"""What one more look at a card is worth on the day of the exam."""

import dataclasses
import datetime as dt
import functools

from app.scheduling.card_pace import LOOK_SECONDS
from app.scheduling.curve import FsrsFormulas
from app.scheduling.memory import CardState

FIRST_GRADES = (0.24, 0.10, 0.50, 0.16)
"""How a first look is assumed to go: shares of again, hard, good, easy."""


@dataclasses.dataclass(frozen=True, slots=True)
class StartedCard:
    """A card that was begun, as plans see it.

    `stability` in days, `difficulty` 1..10; `last` and `due` are study days as
    ordinals (date.toordinal). `note` is shared by a card and its reverse. `fresh` says
    that it was added and never graded: to the learner it is a new card.
    """

    card: str
    stability: float
    difficulty: float
    last: int
    due: int
    note: str = ""
    fresh: bool = False


def never_graded(card: str, note: str, due: int, day: int, curve: FsrsFormulas) -> StartedCard:
    """A card that was added, due on a study day, as one of `day` sees it (ordinals).

    It is as little known as after a first “again”.
    """
    return StartedCard(card, *curve.begun(1), min(due - 1, day), due, note, fresh=True)


@dataclasses.dataclass(frozen=True, slots=True)
class ReviewGain:
    """What a look at a card today does.

    `recall` is the chance (0..1) of knowing it today, `after` the chance expected on
    the exam day with the look, `gain` what of that is owed to the look.
    """

    recall: float
    after: float
    gain: float

    @property
    def seconds(self) -> float:
        """How long the look usually takes, a lapse reckoned in."""
        return LOOK_SECONDS * (2 - self.recall)

    @property
    def rate(self) -> float:
        """Gain per second: the order in which scarce minutes are spent."""
        return self.gain / self.seconds


def review_gain(begun: StartedCard, day: int, exam: int, curve: FsrsFormulas) -> ReviewGain:
    """What a look on `day` does for the chance of recall on the day `exam`.

    The gain is R(day)·R(exam after a right answer) + (1 − R(day))·R(exam after a lapse
    and its relearning) − R(exam without the look). Right answers count as good.
    """
    since, left = max(0, day - begun.last), max(0, exam - day)
    trace = begun.stability, begun.difficulty
    recall = curve.recall(since, begun.stability)
    right = curve.recall(left, curve.grown(trace, recall))
    wrong = curve.recall(left, curve.relearned(trace, recall))
    after = recall * right + (1 - recall) * wrong
    return ReviewGain(recall, after, after - curve.recall(since + left, begun.stability))


def loss_if_final_review(
    begun: StartedCard, today: ReviewGain, exam: int, curve: FsrsFormulas
) -> float:
    """What the last look at a card loses on the exam day if it is taken `today`.

    Against the last possible day, the one before the exam. Cards with the least to
    lose are looked at first, so the ones that fade fastest come last.
    """
    return review_gain(begun, exam - 1, exam, curve).after - today.after


@functools.lru_cache(maxsize=1024)
def new_card_gain(left: int, curve: FsrsFormulas) -> float:
    """The chance of recall expected of a new card, `left` days after its first day."""
    chances = (curve.recall(left, curve.begun(rating)[0]) for rating in range(1, 5))
    return sum(s * r for s, r in zip(FIRST_GRADES, chances, strict=True))


def before_exam(standing: CardState, exam_day: dt.date | None) -> CardState:
    """The standing with the day on which the card comes back at the latest.

    Whatever its interval, it is seen again before the exam: on the day before it, or
    tomorrow where that is later. Without an exam day ahead nothing changes.
    """
    if exam_day is None or standing.state != "review":
        return standing
    eve = exam_day - dt.timedelta(days=1)
    if eve < standing.last_day or standing.due_day <= eve:
        return standing
    tomorrow = standing.last_day + dt.timedelta(days=1)
    return dataclasses.replace(standing, due_day=max(eve, tomorrow))
