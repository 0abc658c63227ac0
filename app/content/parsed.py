"""What one file says: values, mentions of other files, and problems."""

import dataclasses

from app.content.model import (
    Card,
    Drawing,
    ExamBlueprint,
    Flaw,
    Source,
    Syllabus,
    Term,
    Topic,
)
from app.content.problems import Problem
from app.content.source_file import Edit, Mention
from app.questions.model import Question


@dataclasses.dataclass(frozen=True, slots=True)
class Fact:
    """What the bank must know of one item to tell edited from replaced or copied.

    `options` are (key, hash of its words) in authored order; `sketch` samples the
    whole item, see `identity.sketch`; `asks` is whether its stem has words;
    `key` stands for what is right: the key of a question, the figures of a card.
    """

    id: str
    type: str
    line: int
    column: int
    sketch: tuple[int, ...]
    asks: bool
    options: tuple[tuple[str, str], ...] = ()
    broken: bool = False
    key: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class LockEntry:
    """A line of ids.lock: an id ever used.

    `key` is that of the item when its page was reviewed on the day `read`; both are
    empty where nobody has noted them yet.
    """

    id: str
    type: str
    first_seen: str
    retired: str
    sketch: tuple[int, ...]
    options: tuple[tuple[str, str], ...]
    line: int
    key: str = ""
    read: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class ParsedFile:
    """One file of the course as read by itself; `digest` stands for its text.

    `entries` are the lines of objectives and sources in their registers. `outdated` is
    whether this is the last good version, and only the problems are of the newest.
    """

    path: str
    digest: str = ""
    topic: Topic | None = None
    questions: tuple[Question, ...] = ()
    cards: tuple[Card, ...] = ()
    facts: tuple[Fact, ...] = ()
    terms: tuple[Term, ...] = ()
    syllabus: Syllabus | None = None
    sources: tuple[Source, ...] = ()
    exam: ExamBlueprint | None = None
    lock: tuple[LockEntry, ...] = ()
    drawing: Drawing | Flaw | None = None
    anchors: tuple[str, ...] = ()
    entries: tuple[tuple[str, int], ...] = ()
    alerts: tuple[tuple[str, int], ...] = ()
    mentions: tuple[Mention, ...] = ()
    edits: tuple[Edit, ...] = ()
    problems: tuple[Problem, ...] = ()
    outdated: bool = False
