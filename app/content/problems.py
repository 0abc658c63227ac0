"""What is wrong with a piece of content: a value with place, words and remedy."""

import dataclasses
import enum
import logging
import re
from typing import Literal

_log = logging.getLogger("headroom")
_LONGEST = 1_000


class Severity(enum.StrEnum):
    """An error keeps an item out of the course; a warning only speaks."""

    ERROR = "error"
    WARNING = "warning"


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing to mend: `path:line:column code message`, and what to write instead.

    `path` is relative to the content folder; `line` and `column` count from 1;
    `code` is a member of the rule list, e.g. "E04"; `item` the id of the question
    or card it belongs to, empty for a whole file.
    """

    path: str
    line: int
    column: int
    code: str
    severity: Literal["error", "warning"]
    message: str
    hint: str = ""
    item: str = ""


# Every rule by its code, with one line of meaning. E keeps an item out, W speaks.
RULES: dict[str, str] = {
    "E00": "A file is missing or cannot be read.",
    "E01": "A heading has answers but no id.",
    "E02": "A question comment stands without a heading above it.",
    "E03": "An id is not a lower-case slug.",
    "E04": "Two items have the same id.",
    "E05": "An id that was retired is used again.",
    "E06": "An id has vanished without being retired.",
    "W07": "An item kept its id but is a different item now.",
    "E08": "A copied item kept the id of its original.",
    "W09": "Options changed so much that their statistics may be mixed up.",
    "E10": "The front matter, a comment or a TOML file cannot be read.",
    "E11": "A key is written twice.",
    "E12": "A key is not known.",
    "E13": "A type or value is not known.",
    "E14": "An objective is not in the syllabus.",
    "E15": "Difficulty is not a number from 1 to 5.",
    "E16": "A question names no source.",
    "W17": "A source has no https address.",
    "W18": "A page or source was last read more than a year ago.",
    "E20": "No option is marked right.",
    "E21": "A single choice has two right options.",
    "E22": "There are too few options.",
    "E23": "Two options say the same.",
    "E24": "A check box is malformed.",
    "W25": "A wrong option does not say why it is wrong.",
    "W26": "The right option is clearly the longest.",
    "W27": "Only the right option is in code, bold or a number.",
    "W28": "“All of the above” stands among shuffled options.",
    "W29": "The question asks for what is not so, without emphasis.",
    "W30": "The right option stands too often in one position of the file.",
    "W31": "“a” or “an” at the end of the stem gives the answer away.",
    "E40": "A numeric answer does not start with a number.",
    "E41": "A number with decimals has no tolerance.",
    "E42": "A unit is unknown, or two units do not fit together.",
    "E43": "A foreseen wrong value lies inside the accepted range.",
    "E44": "An expression names something that does not exist.",
    "E45": "An expression uses something that is not allowed.",
    "E46": "A placeholder is undefined, or a parameter is never used.",
    "E47": "Some parameters give no usable answer.",
    "W48": "What is shown differs from what is graded.",
    "E50": "An order question has fewer than three steps.",
    "E51": "Two steps are equal.",
    "E52": "A match table does not have two or three columns.",
    "E53": "Two right cells are equal without a note that both count.",
    "E54": "A blank is empty or not closed.",
    "E55": "A blank stands inside a table cell.",
    "W56": "The answer of a blank appears elsewhere in the text.",
    "E57": "A card has no back.",
    "E58": "The drawing of a question is not named, or cannot be shown.",
    "E59": "An option names no region of the drawing, or does not label it.",
    "E60": "An image has no alternative text.",
    "E61": "A linked file, page or heading does not exist.",
    "E62": "HTML or an address outside the allowed list.",
    "E63": "Math cannot be converted.",
    "W64": "A heading level is skipped.",
    "W65": "A stem has more than 120 words.",
    "W66": "A glossary term is defined twice.",
    "W67": "A hint contains the answer.",
    "E70": "The weights of the blueprint do not add up.",
    "E71": "There are too few questions for a mock exam.",
    "W72": "Two stems say nearly the same.",
    "W73": "An objective has no page, no questions or no cards.",
    "E80": "An estimate, card or model is not in the catalogue.",
    "E81": "An input or output does not exist.",
    "E82": "A figure is not the computed value.",
    "E83": "A figure has no unit.",
    "E84": "The inputs of a calculator or figure are out of range.",
    "W85": "A number with a unit is neither computed nor sourced.",
    "E86": "A footnote names no source of the bibliography.",
    "E88": "A file, an item or a text is larger or deeper than can be read.",
    "W87": "A topic lacks an exam box, a memory hook, cards or five questions.",
}


def problem(
    place: tuple[str, int, int], code: str, message: str, hint: str = "", item: str = ""
) -> Problem:
    """Make the problem `code` at (path, line, column); its letter is its severity."""
    severity: Literal["error", "warning"] = "error" if code[0] == "E" else "warning"
    return Problem(*place, code, severity, _cut(message), _cut(hint), item)


def _cut(words: str) -> str:
    """Words that a person can read: what is quoted in them may be a whole file."""
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}…"


def failure(
    place: tuple[str, int, int], what: str, error: Exception, item: str = ""
) -> Problem:
    """What to say where reading failed in a way that no rule foresees, and log it.

    `what` begins the sentence, e.g. “This question”.
    """
    where = on_one_line(f"{place[0]}:{place[1]}")
    _log.error("content %s: it could not be read", where, exc_info=error)
    message = f"{what} could not be read: Headroom failed at it ({_kind(error)})."
    hint = "Undo its last change, and report this with the log of the server."
    return problem(place, "E00", message, hint, item)


def on_one_line(words: str) -> str:
    """Words for the log: a name with a line break must not look like a second entry."""
    return "".join(c if c.isprintable() else "?" for c in words)


def _kind(error: Exception) -> str:
    """The name of an exception as words: “recursion error”."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(error).__name__).lower()
