"""The days ahead: how many cards come back on each."""

import dataclasses
import datetime as dt
from collections.abc import Mapping

from app.progress.store import DueCount


@dataclasses.dataclass(frozen=True, slots=True)
class UpcomingDay:
    """One study day and the cards due on it."""

    day: dt.date
    cards: int
    today: bool


def week(coming: Mapping[str, DueCount], today: dt.date, returning: int) -> tuple[UpcomingDay, ...]:
    """Today with the cards `returning` on the desk, and the six days after it."""
    count = dict.fromkeys(range(7), 0)
    for day, row in coming.items():
        ahead = (dt.date.fromisoformat(day) - today).days
        if ahead in count:
            count[ahead] += row.cards
    count[0] = returning
    return tuple(
        UpcomingDay(today + dt.timedelta(days=n), cards, n == 0) for n, cards in count.items()
    )
