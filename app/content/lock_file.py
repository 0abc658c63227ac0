"""Reads and writes ids.lock, the list of all ids that were ever used in a course."""

import collections
import dataclasses
import re
from collections.abc import Iterable
from urllib.parse import quote, unquote

from app.content.parsed_file import HashedOption, LockEntry
from app.markup.problems import MOST_OPTIONS, ParseContext
from app.markup.text import LARGEST_SAMPLE, MOST_SAMPLES

LOCK_FILE_HEADER = """\
# Every id that was ever used. Written by `headroom check --fix`; commit it.
# To retire an item that you deleted, write today's date in place of the second “-”.
#
# id type first-seen retired fingerprint options key@reviewed words file
"""


_MERGE_CONFLICT_MARK = re.compile(r"(?:<{7}|={7}|>{7}|\|{7})(?: |$)")


def parse_lock_file(parse_context: ParseContext) -> tuple[LockEntry, ...]:
    """Return the entries of ids.lock. Unreadable lines are reported."""
    entries: dict[str, LockEntry] = {}
    for number, line in enumerate(parse_context.lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        if _MERGE_CONFLICT_MARK.match(line):  # reported as such
            continue
        try:
            entry = _parse_lock_line(line.split(), number)
        except (ValueError, IndexError):
            hint = "Restore the line, or delete it and run the check with --fix."
            parse_context.report("E10", number, 1, "This line cannot be read.", hint)
            continue
        first = entries.setdefault(entry.id, entry)
        if first is not entry:
            message = f"“{entry.id}” stands in line {first.line} already."
            hint = "Keep the newer line; or the one with two dates, if it is retired."
            parse_context.report("E11", number, 1, message, hint)
    return tuple(entries.values())


def _parse_lock_line(fields: list[str], line: int) -> LockEntry:
    item_id, kind, first_seen, retired, sketch, options = fields[:6]
    optional_columns = [*fields[6:], "", "", ""]
    key, _, review_date = optional_columns[0].removeprefix("-").partition("@")
    heading, _, body = optional_columns[1].removeprefix("-").partition(".")
    numbers = () if sketch == "-" else tuple(int(s, 36) for s in sketch.split("."))
    pairs = () if options == "-" else tuple(o.split(":") for o in options.split(","))
    if len(numbers) > MOST_SAMPLES or len(pairs) > MOST_OPTIONS:
        raise ValueError("no item has so many words or options")
    if any(not 0 <= number <= LARGEST_SAMPLE for number in numbers):
        raise ValueError("no word has this number")
    return LockEntry(
        item_id,
        kind,
        first_seen,
        "" if retired == "-" else retired,
        numbers,
        tuple(HashedOption(key, text_hash) for key, text_hash in pairs),
        line,
        key,
        review_date,
        heading,
        body,
        unquote(optional_columns[2]),
    )


def format_lock_file(entries: Iterable[LockEntry], previous_text: str = "") -> str:
    """Return the text of ids.lock, sorted by id so that merges stay small.

    Lines of `previous_text` with an unchanged entry keep their text and position, and so do
    comments and the line ending.
    """
    unwritten_entries = {e.id: e for e in entries}
    previous_entries = {e.id: e for e in parse_lock_file(ParseContext("ids.lock", previous_text))}
    new_ids = collections.deque(sorted(unwritten_entries.keys() - previous_entries.keys()))
    lines = []
    for line in (previous_text or LOCK_FILE_HEADER).splitlines():
        item_id = "" if line.startswith("#") else line.partition(" ")[0]
        if item_id in previous_entries:
            while new_ids and new_ids[0] < item_id:
                lines.append(_format_lock_line(unwritten_entries.pop(new_ids.popleft())))
            entry, previous_entry = (
                unwritten_entries.pop(item_id, None),
                dataclasses.replace(previous_entries[item_id], line=0),
            )
            if entry is not None:
                is_unchanged = dataclasses.replace(entry, line=0) == previous_entry
                lines.append(line if is_unchanged else _format_lock_line(entry))
        else:
            lines.append(line)
    lines += [_format_lock_line(unwritten_entries[item_id]) for item_id in new_ids]
    line_end = "\r\n" if "\r\n" in previous_text else "\n"
    return line_end.join(lines) + line_end


def _format_lock_line(entry: LockEntry) -> str:
    return " ".join(
        (
            entry.id,
            entry.type,
            entry.first_seen,
            entry.retired_on or "-",
            ".".join(map(_to_base36, entry.sketch)) or "-",
            ",".join(f"{o.key}:{o.text_hash}" for o in entry.options) or "-",
            *_format_optional_columns(entry),
        )
    )


def _format_optional_columns(entry: LockEntry) -> list[str]:
    """Return the columns that older lines lack, without empty ones at the end."""
    columns = [
        f"{entry.reviewed_key_hash}@{entry.reviewed_on}" if entry.reviewed_key_hash else "-",
        f"{entry.heading_hash}.{entry.body_hash}" if entry.heading_hash or entry.body_hash else "-",
        quote(entry.path) or "-",
    ]
    while columns and columns[-1] == "-":
        columns.pop()
    return columns


def _to_base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
    return digits or "0"
