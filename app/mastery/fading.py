"""What time leaves of an answer: the cards of an objective say how much is kept."""

import dataclasses
import functools
import math
from collections.abc import Callable

from app.scheduling import SchedulerPolicy
from app.scheduling.curve import AT_STABILITY

_PARAMETERS = SchedulerPolicy().parameters
_DECAY = -_PARAMETERS[20]
_FACTOR = math.pow(AT_STABILITY, 1 / _DECAY) - 1
# Where no card follows it, knowledge of a course is kept like a card that was known
# three times on schedule (2.3, 11, then 46 days): what is taught and understood fades
# more slowly than what is learned by heart, and choosing among answers keeps longest
# (Semb and Ellis, Knowledge Taught in School: What Is Remembered?, Review of
# Educational Research 64(2), 1994). Seven eighths last four weeks.
TAUGHT = 46.0
# The mean recall of a card between one review and the next at 90%: ∫₀¹ (1 + F·x)^D dx.
_ON_SCHEDULE = (AT_STABILITY * (1 + _FACTOR) - 1) / (_FACTOR * (1 + _DECAY))


@functools.lru_cache(maxsize=16384)
def recall(days: float, stability: float) -> float:
    """The chance (0..1) of knowing a card `days` after its last answer.

    R = (1 + F·t/S)^(−w20) with F = 0.9^(−1/w20) − 1 (FSRS-6): the closed form of
    `scheduling.memory.recall`. `stability` S in days.

    >>> round(recall(10, 10), 6)
    0.9
    """
    return math.pow(1 + _FACTOR * max(0.0, days) / stability, _DECAY)


@dataclasses.dataclass(frozen=True, slots=True)
class ObjectiveCards:
    """The cards of an objective as one: `begun` of `all`.

    `days` is the mean time since their last answers and `stability` their harmonic
    mean, both in days. The harmonic mean leans to the cards that are lost first.
    """

    begun: int = 0
    all: int = 0
    days: float = 0.0
    stability: float = TAUGHT

    def earlier(self, days: int) -> "ObjectiveCards":
        """The same `days` ago; a card answered since then counts as known then."""
        return dataclasses.replace(self, days=max(0.0, self.days - days))


def retention_curve(cards: ObjectiveCards) -> Callable[[int], float]:
    """The share (0..1) that is left of what was known so many days ago.

    For the part of the objective that its begun cards cover: their recall today
    divided by their recall on that day, which for cards answered since is taken as
    that of a deck on schedule; so reviews on time keep old evidence whole. The other
    part fades by itself. 1 today, and never rising with age.
    """
    if not cards.begun:
        return _alone
    days, stability = cards.days, cards.stability
    today = recall(days, stability)
    covered = min(1.0, cards.begun / max(cards.all, 1))
    on_schedule = covered * min(1.0, today / _ON_SCHEDULE)
    left = 1 - covered

    def share(age: int) -> float:
        if age <= 0:
            return 1.0
        if age >= days:  # answered since
            return on_schedule + left * _alone(age)
        then = min(_ON_SCHEDULE, recall(days - age, stability))
        return covered * min(1.0, today / then) + left * _alone(age)

    return share


@functools.lru_cache(maxsize=4096)
def _alone(age: int) -> float:
    return recall(max(0, age), TAUGHT)
