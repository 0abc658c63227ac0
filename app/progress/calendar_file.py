"""A study plan as a calendar by RFC 5545, one event for each day."""

import datetime as dt
import hashlib
from collections.abc import Iterator

from app.progress.study_plan import PlannedDay, StudyPlan
from app.web.words import NBSP, format_count, format_minutes

_WIDE = 75  # octets of a line, its end not counted
_ESCAPED = {"\\": "\\\\", ";": "\\;", ",": "\\,", "\n": "\\n"}


def calendar_of(plan: StudyPlan | None, exam: str, who: str, now: dt.datetime) -> str:
    """The file. `who` makes the ids of its events stable and its own; `now` is UTC.

    A calendar holds at least one event, so without a plan one says what is missing.
    """
    lines = [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//Headroom//Study plan//EN",
        "CALSCALE:GREGORIAN",
        "METHOD:PUBLISH",
        f"X-WR-CALNAME:{escaped(f'Study for {exam}')}",
        "REFRESH-INTERVAL;VALUE=DURATION:PT12H",
    ]
    for day in plan.days if plan else ():
        lines += _event(day.day, title_of(day), list(parts_of(day)), who, now)
    if plan is not None:
        lines += _event(plan.exam, f"Exam: {exam}", [], who, now)
    else:
        lines += _event(now.date(), "Headroom: no exam day ahead", [], who, now)
    lines.append("END:VCALENDAR")
    return "".join(f"{folded(line)}\r\n" for line in lines)


def title_of(day: PlannedDay) -> str:
    """A day in a few words."""
    time = format_minutes(day.minutes).replace(NBSP, " ")
    if day.mock is not None:
        return f"Headroom: {day.mock.title}, {time}"
    return f"Headroom: {time}" if day.minutes else "Headroom: nothing planned"


def parts_of(day: PlannedDay) -> Iterator[str]:
    """What a day holds, each part in a line."""
    if day.mock is not None:
        yield f"Mock exam: {day.mock.title}, {day.mock.minutes} minutes"
    for _, title, again in day.pages:
        yield f"{'Go on with' if again else 'Read'}: {title}"
    if day.questions:
        on = f" on {day.about}" if day.about else ""
        yield f"{format_count(day.questions, 'question')}{on}".replace(NBSP, " ")
    said = card_words(day)
    if said:
        yield f"Cards: {said}"


def card_words(day: PlannedDay) -> str:
    """The cards of a day: reviews, new ones, and those seen once more.

    Those of today that are in their steps are named as on every page.
    """
    cards = day.cards
    due = max(0, cards.due - cards.learning)
    final = max(0, cards.final - cards.learning)
    counts = (
        (due, format_count(due, "review")),
        (cards.fresh, f"{cards.fresh} new"),
        (final, f"{final} once more"),
        (cards.learning, f"{cards.learning} still being learned"),
    )
    return ", ".join(words for number, words in counts if number).replace(NBSP, " ")


def escaped(words: str) -> str:
    """A text value: backslash, semicolon, comma and line break have a meaning there."""
    return "".join(_ESCAPED.get(letter, letter) for letter in words)


def folded(line: str) -> str:
    """A line of at most 75 octets, which goes on after a break and a space.

    No character is cut in two.
    """
    pieces, piece, size = [], "", 0
    for letter in line:
        more = len(letter.encode())
        if size + more > _WIDE:
            pieces.append(piece)
            piece, size = "", 1  # the space that the next line begins with
        piece += letter
        size += more
    return "\r\n ".join([*pieces, piece])


def _event(day: dt.date, title: str, parts: list[str], who: str, now: dt.datetime) -> list[str]:
    """One event that takes a whole day and leaves it free for others."""
    name = hashlib.sha256(f"{who}:{day.isoformat()}".encode()).hexdigest()[:32]
    lines = [
        "BEGIN:VEVENT",
        f"UID:{name}@headroom",
        f"DTSTAMP:{now:%Y%m%dT%H%M%SZ}",
        f"DTSTART;VALUE=DATE:{day:%Y%m%d}",
        f"DTEND;VALUE=DATE:{day + dt.timedelta(days=1):%Y%m%d}",
        f"SUMMARY:{escaped(title)}",
    ]
    if parts:
        lines.append(f"DESCRIPTION:{escaped(chr(10).join(parts))}")
    return [*lines, "TRANSP:TRANSPARENT", "END:VEVENT"]
