"""Which daily copies stay: by day, then by week, then by month."""

import datetime as dt
import re
from collections.abc import Callable, Hashable, Iterable
from pathlib import Path

DAYS, WEEKS, MONTHS = 7, 4, 6
_NAME = re.compile(r"headroom-(\d{4}-\d{2}-\d{2})(-before-\d{4}-to-\d{4})?\.zip")


def dates_to_keep(dates: Iterable[dt.date]) -> set[dt.date]:
    """The dates whose copies stay, of all that there are.

    The newest seven; the last one of each of the newest four weeks (Monday to Sunday);
    and the last one of each of the newest six months.
    """
    newest_first = sorted(set(dates), reverse=True)
    return {
        *newest_first[:DAYS],
        *_last_of_each(newest_first, lambda day: day.isocalendar()[:2])[:WEEKS],
        *_last_of_each(newest_first, lambda day: (day.year, day.month))[:MONTHS],
    }


def _last_of_each(
    newest_first: list[dt.date], period: Callable[[dt.date], Hashable]
) -> list[dt.date]:
    last: dict[Hashable, dt.date] = {}
    for day in newest_first:
        last.setdefault(period(day), day)
    return list(last.values())


def name_of(day: dt.date) -> str:
    """The name of a daily copy."""
    return f"headroom-{day.isoformat()}.zip"


def name_before(day: dt.date, old: str, new: str) -> str:
    """The name of a copy made before the schema changes from `old` to `new`."""
    return f"headroom-{day.isoformat()}-before-{old}-to-{new}.zip"


def copies(folder: Path) -> dict[Path, dt.date]:
    """The copies in a folder with their days, the newest last; nothing else in it."""
    found = {}
    for path in folder.glob("headroom-*.zip"):
        if match := _NAME.fullmatch(path.name):
            try:
                found[path] = dt.date.fromisoformat(match[1])
            except ValueError:  # a name such as headroom-2026-02-31.zip is not ours
                continue
    return dict(sorted(found.items(), key=lambda copy: (copy[1], copy[0].name)))


def expired_backups(folder: Path) -> list[Path]:
    """The copies in a folder that need not stay."""
    found = copies(folder)
    stay = dates_to_keep(found.values())
    return [path for path, day in found.items() if day not in stay]
