"""The days ahead: how many cards come back on each."""

import dataclasses
import datetime as dt
from collections.abc import Collection, Iterable

from app.progress.store import CardRow


@dataclasses.dataclass(frozen=True, slots=True)
class DayAhead:
    """One study day and the cards due on it."""

    day: dt.date
    cards: int
    today: bool


def week(
    begun: Iterable[CardRow], course: Collection[str], today: dt.date, days: int = 7
) -> tuple[DayAhead, ...]:
    """Today with everything overdue, and the days after it."""
    count = dict.fromkeys(range(days), 0)
    for row in begun:
        if row.suspended or not row.begun or row.card not in course:
            continue
        ahead = max(0, (dt.date.fromisoformat(row.due_day) - today).days)
        if ahead in count:
            count[ahead] += 1
    return tuple(
        DayAhead(today + dt.timedelta(days=n), cards, n == 0)
        for n, cards in count.items()
    )
