"""What was learned of a card as Anki keeps it: its state, and a row for each grade."""

import dataclasses
import datetime as dt
import json
from collections.abc import Iterable, Mapping
from typing import Any

from app.scheduling import (
    CardState,
    ManualEdit,
    ReplayedCard,
    ReviewEvent,
    SchedulerPolicy,
    apply_manual_edit,
    apply_review,
)
from app.scheduling.retention import RETENTION

_POLICY = SchedulerPolicy()
_EASE = 2500  # per mille; asked for by the older scheduler alone
_KINDS: Mapping[str, int] = {"learning": 1, "review": 2, "relearning": 3}
_LOG_KINDS: Mapping[str, int] = {"learning": 0, "review": 1, "relearning": 2}
_ASIDE, _BURIED = -1, -3
_BY_HAND = 4


@dataclasses.dataclass(frozen=True, slots=True)
class TimedReview:
    """A grade that stands, and the milliseconds it took where they were measured."""

    grade: ReviewEvent
    milliseconds: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class DatedEdit:
    """An act that stands, with its moment and its study day."""

    act: ManualEdit
    at: dt.datetime
    day: dt.date


@dataclasses.dataclass(frozen=True, slots=True)
class NewRevlogEntry:
    """A row of the revlog that has no number yet; `at` is the moment in ms.

    `ivl` and `last` are days, or seconds below zero in (re)learning steps; `factor`
    is the difficulty 1..10 as 100..1100, for 0 would mean that a card was reset.
    """

    at: int
    ease: int
    ivl: int
    last: int
    factor: int
    time: int
    kind: int


@dataclasses.dataclass(frozen=True, slots=True)
class AddedCardInfo:
    """What only we know of a card that was added to those of the course.

    `seed` chose the numbers of a question; `since` is the moment in ms from which the
    card is asked.
    """

    seed: int | None = None
    since: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class CardHistory:
    """A card with its standing (None before the first grade) and its log.

    `buried` is the act that put it off, where nothing came after it.
    """

    card: str
    standing: CardState | None
    retention: float
    log: tuple[NewRevlogEntry, ...]
    suspended: bool = False
    aside: AddedCardInfo | None = None
    buried: DatedEdit | None = None

    def is_buried(self, day: dt.date) -> bool:
        """Whether it is not asked any more on this study day."""
        act = self.buried and self.buried.act
        return bool(act and act.until and act.until > day)


def learned(
    card: str,
    rows: Iterable[TimedReview | DatedEdit],
    *,
    suspended: bool = False,
    aside: AddedCardInfo | None = None,
) -> CardHistory:
    """Replay the log of a card, in order, into what Anki keeps of it."""
    now = ReplayedCard()
    log: list[NewRevlogEntry] = []
    retention = RETENTION
    row = None
    for row in rows:
        before = now.standing
        if isinstance(row, DatedEdit):
            now = apply_manual_edit(now, row.act)
            log += _set(before, now.standing, row)
            continue
        standing = apply_review(before, row.grade, card)
        log.append(_logged(before, standing, row))
        now, retention = ReplayedCard(standing), row.grade.retention
    buried = row if isinstance(row, DatedEdit) and row.act.kind == "bury" else None
    return CardHistory(card, now.standing, retention, tuple(log), suspended, aside, buried)


def _set(
    before: CardState | None, now: CardState | None, row: DatedEdit
) -> Iterable[NewRevlogEntry]:
    """The row of an act, where Anki has one: of a card that was begun."""
    if before is None or row.act.kind == "bury":
        return
    at, last = round(row.at.timestamp() * 1000), _interval(before)
    if now is None:
        yield NewRevlogEntry(at, 0, 0, last, 0, 0, _BY_HAND)
    else:
        days = max(1, (now.due_day - row.day).days)
        yield NewRevlogEntry(at, 0, days, last, _factor(now), 0, _BY_HAND)


def _factor(standing: CardState) -> int:
    return round(((standing.difficulty - 1) / 9 + 0.1) * 1000)


def _logged(before: CardState | None, now: CardState, timed: TimedReview) -> NewRevlogEntry:
    return NewRevlogEntry(
        at=round(timed.grade.at.timestamp() * 1000),
        ease=timed.grade.rating,
        ivl=_interval(now),
        last=_interval(before) if before else 0,
        factor=_factor(now),
        time=timed.milliseconds or 0,
        kind=_LOG_KINDS[before.state] if before else 0,
    )


def _interval(standing: CardState) -> int:
    """Days until the card is due; seconds, below zero, in (re)learning steps."""
    if standing.state == "review":
        return max(1, (standing.due_day - standing.last_day).days)
    return -max(1, round((standing.due_at - standing.last_at).total_seconds()))


def state_columns(
    card: CardHistory, days: tuple[dt.date, dt.date], place: int
) -> tuple[object, ...]:
    """The columns of a card from `type` on.

    `days` are the one from which the collection counts, and the study day of now;
    `place` is the card's place among new ones.
    """
    standing, (born, today) = card.standing, days
    buried = card.is_buried(today)
    off = _ASIDE if card.suspended else _BURIED if buried else None
    if standing is None:
        return 0, off or 0, place, 0, 0, 0, 0, 0, 0, 0, 0, _data(card)
    # In steps a card has a moment; with a day set by hand it is a review on that day.
    set_day = standing.due_day > standing.last_day and not buried
    stepping = standing.state != "review" and not set_day
    queue = 1 if stepping else 2
    due = (standing.due_day - born).days
    left = max(1, _steps(standing) - (standing.step or 0)) if stepping else 0
    return (
        _KINDS[standing.state if stepping else "review"],
        off or queue,
        round(standing.due_at.timestamp()) if stepping else due,
        0 if stepping and standing.state == "learning" else max(1, _interval(standing)),
        _EASE,
        standing.reviews,
        standing.lapses,
        left * 1001,  # how many steps are left today, and how many at all
        0,
        0,
        0,
        _data(card),
    )


def _steps(standing: CardState) -> int:
    relearns = standing.state == "relearning"
    return len(_POLICY.relearning_steps if relearns else _POLICY.learning_steps)


def _data(card: CardHistory) -> str:
    """The memory as FSRS has it, and what only we know of the card."""
    known: dict[str, Any] = {}
    if card.standing is not None:
        known = {
            "s": round(card.standing.stability, 4),
            "d": round(card.standing.difficulty, 3),
            "dr": card.retention,
            "lrt": int(card.standing.last_at.timestamp()),
        }
    if card.aside is not None:
        own = {"seed": card.aside.seed, "since": card.aside.since}
        kept = {name: value for name, value in own.items() if value is not None}
        known["cd"] = json.dumps(kept, separators=(",", ":"))
    return json.dumps(known, separators=(",", ":"))
