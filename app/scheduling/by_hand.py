"""What is set by hand: a card back to new, or the day on which it is asked."""

import dataclasses
import datetime as dt
from collections.abc import Iterable
from typing import Literal

from app.scheduling.memory import CardState, ReviewEvent, apply_review

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
