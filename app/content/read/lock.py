"""ids.lock: every id ever used, one to a line."""

from collections.abc import Iterable
from urllib.parse import quote, unquote

from app.content.identity import LARGEST_SAMPLE, MOST_SAMPLES
from app.content.limits import MOST_OPTIONS
from app.content.parsed import LockEntry
from app.content.source_file import SourceFile

HEAD = """\
# Every id that was ever used. Written by `headroom check --fix`; commit it.
# To retire an item that you deleted, write today's date in place of the second “-”.
#
# id type first-seen retired fingerprint options key@reviewed words file
"""


def read_lock(sheet: SourceFile) -> tuple[LockEntry, ...]:
    """The entries of a lock file; a line that cannot be read is reported."""
    found: dict[str, LockEntry] = {}
    for number, line in enumerate(sheet.lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            entry = _entry(line.split(), number)
        except (ValueError, IndexError):
            hint = "Restore the line, or delete it and run the check with --fix."
            sheet.report("E10", number, 1, "This line cannot be read.", hint)
            continue
        first = found.setdefault(entry.id, entry)
        if first is not entry:
            message = f"“{entry.id}” stands in line {first.line} already."
            hint = "Keep the newer line; or the one with two dates, if it is retired."
            sheet.report("E11", number, 1, message, hint)
    return tuple(found.values())


def _entry(fields: list[str], line: int) -> LockEntry:
    name, kind, seen, retired, sketch, options = fields[:6]
    rest = [*fields[6:], "", "", ""]
    key, _, read = rest[0].removeprefix("-").partition("@")
    heading, _, body = rest[1].removeprefix("-").partition(".")
    numbers = () if sketch == "-" else tuple(int(s, 36) for s in sketch.split("."))
    pairs = () if options == "-" else tuple(o.split(":") for o in options.split(","))
    if len(numbers) > MOST_SAMPLES or len(pairs) > MOST_OPTIONS:
        raise ValueError("no item has so many words or options")
    if any(not 0 <= number <= LARGEST_SAMPLE for number in numbers):
        raise ValueError("no word has this number")
    return LockEntry(
        name,
        kind,
        seen,
        "" if retired == "-" else retired,
        numbers,
        tuple((option, digest) for option, digest in pairs),
        line,
        key,
        read,
        heading,
        body,
        unquote(rest[2]),
    )


def write_lock(entries: Iterable[LockEntry]) -> str:
    """The text of a lock file, sorted by id so that merges stay small."""
    lines = [
        " ".join(
            (
                e.id,
                e.type,
                e.first_seen,
                e.retired or "-",
                ".".join(map(_base36, e.sketch)) or "-",
                ",".join(f"{k}:{d}" for k, d in e.options) or "-",
                *_further(e),
            )
        )
        for e in sorted(entries, key=lambda e: e.id)
    ]
    return HEAD + "\n".join(lines) + "\n"


def _further(entry: LockEntry) -> list[str]:
    """The columns that older lines lack, up to the last one that says something."""
    columns = [
        f"{entry.key}@{entry.read}" if entry.key else "-",
        f"{entry.heading}.{entry.body}" if entry.heading or entry.body else "-",
        quote(entry.path) or "-",
    ]
    while columns and columns[-1] == "-":
        columns.pop()
    return columns


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, rest = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[rest] + digits
    return digits or "0"
