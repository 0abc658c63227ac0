"""What the reader of TOML finds wrong, in words for those who know no TOML."""

import re

_SETTING = re.compile(r"^\s*(?P<key>[\w-]+)\s*=\s*(?P<value>[^#]*?)\s*(?:#.*)?$")
_QUOTES = "\"'\u201c\u201d\u201e\u2018\u2019"
_MOST_SHOWN = 60
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}$")
_TURNED_DATE = re.compile(r"\d{1,2}[-./]\d{1,2}[-./]\d{4}$")
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%")
_SWITCHES = {"yes": "true", "on": "true", "no": "false", "off": "false"}
_SWITCHES |= {"true": "true", "false": "false"}
_PLAINLY = {
    "Illegal character '\\n'": (
        "A quotation mark is not closed in this line.",
        'Write " at its end.',
    ),
    "Expected '=' after a key": (
        "This line has no “=” behind its key.",
        'Write key = "text".',
    ),
    "Expected ']' at the end of a table": (
        "This [heading] is not closed, or holds a space.",
        "Write [one-word] on a line of its own.",
    ),
    "Unclosed array": (
        "A list is not closed, or a comma is missing in it.",
        'Write ["one", "two"].',
    ),
}


def in_words(what: str, row: str) -> tuple[str, str]:
    """The sentence and the remedy for what is wrong in a row; empty where unknown."""
    for begins, said in _PLAINLY.items():
        if what.startswith(begins):
            return said
    if found := _SETTING.match(row):
        if what == "Invalid value":
            return _unquoted(found["key"], found["value"])
        if what.startswith("Expected newline"):
            return _behind(found["key"], found["value"])
    return "", ""


def _unquoted(key: str, value: str) -> tuple[str, str]:
    """A value that is neither a text in quotes nor anything else."""
    if value.startswith("["):
        message = "A text of this list does not stand in straight quotation marks."
        return message, f'Write {key} = ["one", "two"]'
    if value.casefold() in _SWITCHES:
        return (
            f"“{value}” is not known here.",
            f"Write {key} = {_SWITCHES[value.casefold()]}",
        )
    words = value.strip(_QUOTES)[:_MOST_SHOWN]
    message = f"“{words}” does not stand in straight quotation marks."
    return message, f'Write {key} = "{words}"'


def _behind(key: str, value: str) -> tuple[str, str]:
    """Something that follows a value on its line."""
    if number := _PERCENT.match(value):
        return "A number has a percent sign.", f"Write {key} = {number[1]}"
    if _TURNED_DATE.match(value):
        message = f"“{value}” is not a date as it is written here."
        return message, f"Write year, month and day: {key} = 2026-11-20"
    if _DATE.match(value):
        return f"“{value}” is not a day of the calendar.", f"Write {key} = 2026-11-20"
    message = f"Something stands behind the value of “{key}”."
    return message, 'Write one key = value to a line, and a text in "…".'
