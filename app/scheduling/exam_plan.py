"""The cards of a study day when an exam lies ahead.

Three rules, in the order in which they take the minutes:

1. In the last days every begun card is seen once more. The window is as long as the
   minutes of a day make it.
2. Before it, new cards are begun at an even pace that ends with the window; where the
   minutes do not suffice for all, they take all of them, for a begun card has its last
   look ahead and gains less per minute from one in between.
3. What is due takes the rest, the most gain per minute first.
"""

import dataclasses
import math
from collections.abc import Iterable, Sequence

from app.scheduling.card_pace import LOOK_SECONDS, USUAL, CardPace
from app.scheduling.curve import Curve
from app.scheduling.exam import (
    Begun,
    Worth,
    begin_worth,
    waiting,
    worth,
)
from app.scheduling.retention import RETENTION

_LAPSES = 1.125
FINAL_SECONDS = LOOK_SECONDS * _LAPSES
"""A look in the last days: one in eight is a lapse."""
SPREAD_DAYS = 60
"""New cards are spread over at most so many days: a far exam is no reason to wait."""
LEAST_GAIN = 0.01
"""A second look in the last days for less than this is not asked for."""


@dataclasses.dataclass(frozen=True, slots=True)
class PlanInputs:
    """What a plan is for: the study day and the exam as ordinals, and the time.

    `seconds` of each study day are for cards, of which `spent` are over today;
    `retention` is the recall (0..1) at which a card comes back, `pace` how long the
    learner takes.
    """

    day: int
    exam: int
    seconds: float
    retention: float = RETENTION
    spent: float = 0.0
    pace: CardPace = USUAL

    @property
    def final(self) -> float:
        """How long a look in the last days takes, lapses reckoned in."""
        return self.pace.look * _LAPSES

    @property
    def left(self) -> int:
        """Study days left, today included and the exam day not; at least 1."""
        return max(1, self.exam - self.day)

    @property
    def room(self) -> float:
        """Seconds left of the study day."""
        return max(0.0, self.seconds - self.spent)


@dataclasses.dataclass(frozen=True, slots=True)
class DayPlan:
    """The cards of one study day.

    `looks` are begun cards in the order to be asked, `fresh` how many new ones are
    begun after them. `final` says that the last days have begun, `short` that they do
    not hold a last look at every card, `stopped` that no new card will be begun
    although some are left. `seconds` is the time expected.
    """

    looks: tuple[Begun, ...]
    fresh: int
    final: bool = False
    short: bool = False
    stopped: bool = False
    seconds: float = 0.0


def final_days(cards: int, seconds: float, look: float = FINAL_SECONDS) -> int:
    """How many days the last look at `cards` takes; at least 1.

    >>> final_days(356, 900), final_days(0, 900)
    (5, 1)
    """
    return max(1, math.ceil(cards * look / seconds))


def reachable(begun: int, unseen: int, asked: PlanInputs) -> int:
    """How many cards can be begun by the exam and still have their last look."""
    time = asked.left * asked.seconds + begun * asked.pace.first
    most = int(time / (asked.pace.first + asked.final))
    return min(begun + unseen, max(begun, most))


def pace(begun: int, unseen: int, asked: PlanInputs) -> int:
    """How many new cards are begun today, so that the rest is begun in time.

    Evenly over the days before the last ones; never more than the time holds.
    """
    window = final_days(reachable(begun, unseen, asked), asked.seconds, asked.final)
    days = max(1, min(asked.exam - asked.day - window, SPREAD_DAYS))
    return min(math.ceil(unseen / days), int(asked.room // asked.pace.first))


@dataclasses.dataclass(frozen=True, slots=True)
class Outline:
    """The plan in short, from counts alone.

    `fresh` new cards a day until the day before `final`, an ordinal that may be over,
    from which every begun card is seen once more; `begun` cards are begun by then.
    """

    fresh: int
    final: int
    begun: int


def outline(begun: int, unseen: int, asked: PlanInputs) -> Outline:
    """What the rules above come to while nothing is missed."""
    own, ahead = final_days(begun, asked.seconds, asked.final), asked.exam - asked.day
    if ahead <= own:
        return Outline(0, asked.exam - own, begun)
    most = reachable(begun, unseen, asked)
    days = min(final_days(most, asked.seconds, asked.final), ahead - 1)
    return Outline(pace(begun, unseen, asked), asked.exam - days, most)


def day_plan(
    begun: Sequence[Begun], unseen: int, asked: PlanInputs, curve: Curve
) -> DayPlan:
    """The plan of a study day, from what was begun before it.

    Cards seen on the day itself do not count as begun. The same cards give the same
    plan, in whatever order they come.
    """
    window = final_days(len(begun), asked.seconds, asked.final)
    if asked.exam - asked.day <= window:
        return _final(begun, unseen, asked, curve)
    fresh = pace(len(begun), unseen, asked)
    time = asked.room - fresh * asked.pace.first
    due = [
        (c, worth(c, asked.day, asked.exam, curve)) for c in begun if c.due <= asked.day
    ]
    looks, spent = _fit(_by_rate(due), time, set(), asked)
    return DayPlan(
        looks=looks,
        fresh=fresh,
        stopped=bool(unseen) and not fresh,
        seconds=spent + fresh * asked.pace.first,
    )


def plain_day(
    begun: Sequence[Begun], unseen: int, asked: PlanInputs, curve: Curve
) -> DayPlan:
    """The study day as it would be without an exam: what is due, then what is new.

    The most faded first, in the same time.
    """
    due = [c for c in begun if c.due <= asked.day]
    due.sort(key=lambda c: (-(asked.day - c.last) / c.stability, c.card))
    ranked = ((c, worth(c, asked.day, asked.day, curve)) for c in due)
    looks, spent = _fit(ranked, asked.room, set(), asked)
    time = max(0.0, asked.room - spent)
    fresh = min(unseen, int(time // asked.pace.first))
    return DayPlan(looks, fresh, seconds=spent + fresh * asked.pace.first)


def _final(
    begun: Sequence[Begun], unseen: int, asked: PlanInputs, curve: Curve
) -> DayPlan:
    """A day of the last ones: the last looks, and what still pays after them.

    Where the minutes left do not hold a last look at every card, none is owed one:
    all looks, second ones too, compete with new cards by gain per second.
    """
    start = asked.exam - final_days(len(begun), asked.seconds, asked.final)
    ranked = [(c, worth(c, asked.day, asked.exam, curve)) for c in begun]
    last = [(c, w) for c, w in ranked if c.last < start]
    short = len(last) * asked.final > asked.left * asked.seconds
    again = [(c, w) for c, w in ranked if start <= c.last and w.gain >= LEAST_GAIN]
    # On the very last day a card and its reverse cannot be kept apart.
    notes: set[str] | None = set() if asked.left > 1 else None
    owed = [] if short else _by_loss(last, asked, curve)
    looks, spent = _fit(owed, asked.room, notes, asked)
    pool = _by_rate(ranked if short else again)
    rate = begin_worth(asked.exam - asked.day, curve) / asked.pace.first
    rate *= asked.pace.scale
    better = [(c, w) for c, w in pool if w.rate > rate]
    more, time = _fit(better, asked.room - spent, notes, asked)
    spent += time
    room = int((asked.room - spent) // asked.pace.first)
    fresh = min(unseen, room) if asked.exam > asked.day else 0
    spent += fresh * asked.pace.first
    rest, time = _fit(pool[len(better) :], asked.room - spent, notes, asked)
    return DayPlan(
        looks=(*looks, *more, *rest),
        fresh=fresh,
        final=True,
        short=short,
        stopped=bool(unseen) and not fresh,
        seconds=spent + time,
    )


def _by_loss(
    last: list[tuple[Begun, Worth]], asked: PlanInputs, curve: Curve
) -> list[tuple[Begun, Worth]]:
    lost = {c.card: waiting(c, w, asked.exam, curve) for c, w in last}
    return sorted(last, key=lambda item: (lost[item[0].card], item[0].card))


def _by_rate(ranked: Iterable[tuple[Begun, Worth]]) -> list[tuple[Begun, Worth]]:
    return sorted(ranked, key=lambda item: (-item[1].rate, item[0].card))


def _fit(
    ranked: Iterable[tuple[Begun, Worth]],
    seconds: float,
    notes: set[str] | None,
    asked: PlanInputs,
) -> tuple[tuple[Begun, ...], float]:
    """The first of them that fit into the time; `notes` taken already are left out."""
    taken: list[Begun] = []
    spent = 0.0
    for card, value in ranked:
        if notes is not None and card.note in notes:
            continue
        time = value.seconds * asked.pace.scale
        if spent + time > seconds:
            break
        taken.append(card)
        spent += time
        if notes is not None and card.note:
            notes.add(card.note)
    return tuple(taken), spent
