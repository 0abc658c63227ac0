"""What somebody should read again: pages and sources by their last review. Pure."""

import dataclasses
import datetime as dt

from app.content.live.library import Library

_LASTS = dt.timedelta(days=365)
_AHEAD = dt.timedelta(days=30)  # so long before its day a review is asked for


@dataclasses.dataclass(frozen=True, slots=True)
class OverdueReview:
    """A page or source to read again: its name, its file, since when, and why.

    `topic` is the slug of a page, empty for a source; `day` None where there is none.
    """

    name: str
    path: str
    topic: str
    day: dt.date | None
    why: str


def reviews_due(library: Library, today: dt.date) -> list[OverdueReview]:
    """Pages and sources to read again, the longest due first; drafts not at all."""
    found = []
    for page in library.as_authored().topics.values():
        path, day = page.place.path, page.reviewed
        if page.status == "review":
            why = "waits for a second reader"
            found.append(OverdueReview(page.title, path, page.slug, None, why))
        elif page.status == "live" and (why := _why(day, today, "was never reviewed")):
            found.append(OverdueReview(page.title, path, page.slug, day, why))
    found += [
        OverdueReview(source.key, source.path, "", source.read, why)
        for source in library.sources.values()
        if (why := _why(source.read, today, ""))
    ]
    return sorted(found, key=lambda due: (due.day or dt.date.min, due.path, due.name))


def _why(day: dt.date | None, today: dt.date, never: str) -> str:
    """Why to read again what was read on a day; empty where it is not due."""
    if day is None:
        return never
    due = day + _LASTS
    if due - _AHEAD > today:
        return ""
    return f"was due on {due}" if due < today else f"is due by {due}"
