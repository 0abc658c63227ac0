"""ids.lock: every id ever used, one to a line."""

from collections.abc import Iterable

from app.content.identity import LARGEST_SAMPLE, MOST_SAMPLES
from app.content.limits import MOST_OPTIONS
from app.content.parsed import LockEntry
from app.content.source_file import Manuscript

HEAD = """\
# Every id that was ever used. Written by `headroom check --fix`; commit it.
# To retire an item that you deleted, write today's date in place of the second “-”.
#
# id type first-seen retired fingerprint options key@reviewed
"""


def read_lock(sheet: Manuscript) -> tuple[LockEntry, ...]:
    """The entries of a lock file; a line that cannot be read is reported."""
    found = []
    for number, line in enumerate(sheet.lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = line.split()
        try:
            found.append(_entry(fields, number))
        except (ValueError, IndexError):
            hint = "Restore the line, or delete it and run the check with --fix."
            sheet.report("E10", number, 1, "This line cannot be read.", hint)
    return tuple(found)


def _entry(fields: list[str], line: int) -> LockEntry:
    name, kind, seen, retired, sketch, options = fields[:6]
    key, _, read = (fields[6] if len(fields) > 6 else "").partition("@")
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
                *([f"{e.key}@{e.read}"] if e.key else []),
            )
        )
        for e in sorted(entries, key=lambda e: e.id)
    ]
    return HEAD + "\n".join(lines) + "\n"


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, rest = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[rest] + digits
    return digits or "0"
