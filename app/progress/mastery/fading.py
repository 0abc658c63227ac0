"""What time leaves of an answer: the cards of an objective say how much is kept."""

import dataclasses

from app.scheduling import Policy

_PARAMETERS = Policy().parameters
_DECAY = -_PARAMETERS[20]
_FACTOR = 0.9 ** (1 / _DECAY) - 1
# An answer that no card follows is kept like a card that was answered well once:
# the first stability after “good”, 2.3 days, of which two thirds last four weeks.
ONCE = _PARAMETERS[2]


def recall(days: float, stability: float) -> float:
    """The chance (0..1) of knowing a card `days` after its last answer.

    R = (1 + F·t/S)^(−w20) with F = 0.9^(−1/w20) − 1 (FSRS-6): the closed form of
    `scheduling.recall`. `stability` S in days.

    >>> round(recall(10, 10), 6)
    0.9
    """
    chance: float = (1 + _FACTOR * max(0.0, days) / stability) ** _DECAY
    return chance


@dataclasses.dataclass(frozen=True, slots=True)
class Cards:
    """The cards of an objective as one: `begun` of `all`.

    `days` is the mean time since their last answers and `stability` their harmonic
    mean, both in days. The harmonic mean leans to the cards that are lost first.
    """

    begun: int = 0
    all: int = 0
    days: float = 0.0
    stability: float = ONCE

    def earlier(self, days: int) -> "Cards":
        """The same `days` ago; a card answered since then counts as known then."""
        return dataclasses.replace(self, days=max(0.0, self.days - days))


def kept(age: int, cards: Cards) -> float:
    """The share (0..1) that is left of what was known `age` days ago.

    For the part of the objective that its begun cards cover: their recall today
    divided by their recall on that day; a card that was answered since then was
    known at that answer, so reviews keep old evidence fresh. The other part fades
    like one answer that nothing follows. 1 today, and never rising with age.
    """
    if age <= 0:
        return 1.0
    alone = recall(age, ONCE)
    if not cards.begun:
        return alone
    covered = min(1.0, cards.begun / max(cards.all, 1))
    then = recall(cards.days - age, cards.stability)
    return covered * recall(cards.days, cards.stability) / then + (1 - covered) * alone
