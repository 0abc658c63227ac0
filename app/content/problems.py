"""What is wrong with a piece of content: a value with place, words and remedy."""

import dataclasses
import enum
from typing import Literal


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
