"""Which days are named below the columns of days ahead."""

import datetime as dt
import math
from collections.abc import Sequence

from app.drawings.columns import ColumnLabel
from app.web.words import format_short_date

WIDTH = 93.0
"""What the columns take of a drawing in percent."""
_NAME = 18.0  # percent of a narrow drawing that the name of a day takes


def day_names(days: Sequence[dt.date]) -> tuple[ColumnLabel, ...]:
    """Today, some Mondays, and the last day, none of them on another's words."""
    first = ColumnLabel(0, "Today")
    if len(days) == 1:
        return (first,)
    slot = WIDTH / len(days)
    mondays = [n for n, day in enumerate(days) if day.weekday() == 0]
    every = math.ceil(_NAME / (7 * slot))
    free = [n for n in mondays if _NAME < n * slot < WIDTH - 1.6 * _NAME]
    middle = (ColumnLabel(slot * (n + 0.5), format_short_date(days[n]), "m") for n in free[::every])
    return (first, *middle, ColumnLabel(WIDTH, format_short_date(days[-1]), "e"))
