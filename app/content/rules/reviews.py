"""W19: a key or figure that changed asks for a new review. Pure."""

import datetime as dt
from collections.abc import Iterator, Mapping

from app.content.identity import content_hash
from app.content.parsed import ItemFingerprint, LockEntry, ParsedFile
from app.content.problems import ContentProblem, make_problem

# The key of nothing, which was once noted for true-false, match, order and design
# whatever was right in them. It says nothing of what was reviewed, so the next `--fix`
# notes the key of now in its place and asks for no review. A card without figures has
# it for good: a figure that comes into its back is a change like any other.
_NO_KEY = content_hash("")[:6]


def check_reviews(readings: Mapping[str, ParsedFile], today: dt.date) -> Iterator[ContentProblem]:
    """W19: the key of an item is another than that which was reviewed."""
    lock = readings.get("ids.lock")
    entries = {e.id: e for e in lock.lock} if lock else {}
    for path, reading in readings.items():
        page = page_of(path)
        read = reviewed_of(path, readings)
        for fact in reading.facts:
            entry = entries.get(fact.id)
            if entry and read and is_unreviewed(entry, fact, read, today):
                message = f"What is right in “{fact.id}” changed after {entry.read}."
                hint = (
                    "Read it against its sources, write the date of today behind "
                    f"“reviewed:” in {page}, and run the check with --fix."
                )
                place = (path, fact.line, fact.column)
                yield make_problem(place, "W19", message, hint, fact.id)


def page_of(path: str) -> str:
    """The page that says for all items of its folder when they were read."""
    return f"{path.rpartition('/')[0]}/concept.md"


def reviewed_of(path: str, readings: Mapping[str, ParsedFile]) -> dt.date | None:
    """The day on which the page of an item's topic was read last."""
    page = readings.get(page_of(path))
    return page.topic.reviewed if page and page.topic else None


def is_unreviewed(entry: LockEntry, fact: ItemFingerprint, read: dt.date, today: dt.date) -> bool:
    """Whether the key changed since it was reviewed, and nobody read it again.

    A review of today counts as one after the change, whenever that was.
    """
    if not entry.key or entry.retired or fact.broken or entry.type != fact.type:
        return False
    if entry.key == _NO_KEY and fact.type != "card":
        return False
    return entry.key != fact.key and read.isoformat() <= entry.read and read < today
