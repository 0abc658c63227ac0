"""What is wrong with a piece of content: a value with place, words and remedy."""

import dataclasses
import logging
import re
from typing import Literal

LOG = logging.getLogger("headroom.content.failures")
"""What failed in a way that no rule foresees, with the way to where it did."""
_LONGEST = 1_000


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class ContentProblem:
    """One thing to mend: `path:line:column code message`, and what to write instead.

    `path` is relative to the content folder; `line` and `column` count from 1;
    `code` is one of `app.content.codes`, e.g. "E04"; `item` the id of the question
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


def make_problem(
    place: tuple[str, int, int], code: str, message: str, hint: str = "", item: str = ""
) -> ContentProblem:
    """Make the problem `code` at (path, line, column); its letter is its severity."""
    severity: Literal["error", "warning"] = "error" if code[0] == "E" else "warning"
    return ContentProblem(*place, code, severity, _cut(message), _cut(hint), item)


def _cut(words: str) -> str:
    """Words that a person can read: what is quoted in them may be a whole file."""
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}…"


def internal_error_problem(
    place: tuple[str, int, int], what: str, error: Exception, item: str = ""
) -> ContentProblem:
    """What to say where reading failed in a way that no rule foresees, and log it.

    `what` begins the sentence, e.g. “This question”.
    """
    where = on_one_line(f"{place[0]}:{place[1]}")
    LOG.error("content %s: it could not be read", where, exc_info=error)
    message = f"{what} could not be read: Headroom failed at it ({_kind(error)})."
    hint = "Undo its last change, and report what `headroom check --verbose` says."
    return make_problem(place, "E00", message, hint, item)


def on_one_line(words: str) -> str:
    """Words for the log: a name with a line break must not look like a second entry."""
    return "".join(c if c.isprintable() else "?" for c in words)


def _kind(error: Exception) -> str:
    """The name of an exception as words: “recursion error”."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(error).__name__).lower()
