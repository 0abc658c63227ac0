"""Problem codes, limits, and what is collected while a file is parsed.

Every limit is far above what a course needs, and low enough that no file of the
largest size takes longer than a few seconds to parse.
"""

import bisect
import dataclasses
import itertools
import logging
import re
import textwrap
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple

from app.markup.text import LONGEST_ID, SLUG_LIKE, slugify

LOG = logging.getLogger("headroom.content.failures")
"""Logger for unexpected errors of the parser, with their tracebacks."""
_MAX_MESSAGE_LENGTH = 1_000


class TextPosition(NamedTuple):
    """A place in a text; both count from 1."""

    line: int
    column: int


class ProblemLocation(NamedTuple):
    """A place in a file of the course; its path is relative to the content folder."""

    path: str
    line: int = 1
    column: int = 1


class ProblemText(NamedTuple):
    message: str
    hint: str


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class ContentProblem:
    """A problem to fix: `path:line:column code message`, and a hint.

    `path` is relative to the content folder; `line` and `column` count from 1;
    `code` is one of `app.markup.problems`, e.g. "E04"; `item` the id of the question
    or card it belongs to, empty for a whole file. `is_consequence` says that it usually follows
    from another error of its item or file; `hides_rest_of_file` that the file is unread below it.
    """

    path: str
    line: int
    column: int
    code: str
    severity: Literal["error", "warning"]
    message: str
    hint: str = ""
    item: str = ""
    is_consequence: bool = False
    hides_rest_of_file: bool = False


def make_problem(
    location: ProblemLocation,
    code: str,
    message: str,
    hint: str = "",
    item: str = "",
    *,
    is_consequence: bool = False,
    hides_rest_of_file: bool = False,
) -> ContentProblem:
    """Create the problem `code`; its letter is its severity."""
    severity: Literal["error", "warning"] = "error" if code[0] == "E" else "warning"
    return ContentProblem(
        *location,
        code,
        severity,
        _shorten_message(message),
        _shorten_message(hint),
        item,
        is_consequence,
        hides_rest_of_file,
    )


def _shorten_message(message: str) -> str:
    return message if len(message) <= _MAX_MESSAGE_LENGTH else f"{message[:_MAX_MESSAGE_LENGTH]}…"


def log_error_and_make_problem(
    location: ProblemLocation, subject: str, error: Exception, item: str = ""
) -> ContentProblem:
    """Log an unexpected error of the parser, and return the problem to report for it.

    `subject` begins the sentence, e.g. “This question”.
    """
    location_text = replace_unprintable_characters(f"{location.path}:{location.line}")
    LOG.error("content %s: it could not be read", location_text, exc_info=error)
    # The name of the exception as words, such as “recursion error”.
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(error).__name__).lower()
    message = f"{subject} could not be read: Headroom failed at it ({name})."
    hint = "Undo its last change, and report what `headroom check --verbose` says."
    return make_problem(location, "E00", message, hint, item)


def replace_unprintable_characters(text: str) -> str:
    """Replace line breaks and the like by “?”, so that no name in the log looks like an entry."""
    return "".join(c if c.isprintable() else "?" for c in text)


_PROBLEM_CODES_FILE = Path(__file__).with_name("problem_codes.toml")
_LINE_WIDTH = 80


@dataclasses.dataclass(frozen=True, slots=True)
class ProblemCodeDescription:
    """What a code means, how to fix it, and an example that causes it."""

    meaning: str
    remedy: str
    example: str


PROBLEM_CODES: dict[str, ProblemCodeDescription] = {
    code: ProblemCodeDescription(**row)
    for code, row in tomllib.loads(_PROBLEM_CODES_FILE.read_text("utf-8")).items()
}


def describe_problem_code(code: str) -> str:
    """Describe a code for a terminal; raises KeyError for an unknown one."""
    rule = PROBLEM_CODES[code]
    kind = "an error, its item is left out" if code[0] == "E" else "a warning"
    example = textwrap.indent(rule.example.strip(), "    ")
    remedy = textwrap.fill(rule.remedy, _LINE_WIDTH)
    return f"{code}, {kind}: {rule.meaning}\n\nFor example:\n\n{example}\n\n{remedy}"


MOST_BYTES = 2_000_000  # per file
MOST_LINES = 100_000  # per file
MOST_BLOCKS = 200_000  # Block tokens per file, and as many inline tokens.
MOST_NESTED = 30  # Nested quotes, or half as many nested lists.
MOST_LETTERS = 20_000  # per paragraph, heading or cell
MOST_MARKS = 500  # Markup of one kind per paragraph, heading or cell.
MOST_COLUMNS = 50  # per table
MOST_CELLS = 20_000  # per table
MOST_ITEMS = 5_000  # Questions or cards per file.
MOST_OPTIONS = 200  # Options, steps, pairs or blanks per question.
MOST_HINTS = 20
MOST_TERMS = 1_000  # per glossary
MOST_ENTRIES = 1_000  # Per list of a register: topics, sources, domains, questions.
MOST_MINUTES = 1_440  # per mock exam
MOST_PARAMETERS = 40  # per question, and as many expressions
MOST_COLORED = 10_000  # Characters of a code block that is highlighted.

# Parsing effort is counted in estimated microseconds and not measured, so that the
# same text always has the same sum, however busy the machine is.
MOST_EFFORT = 20_000_000
PROBLEM_EFFORT = 1_000
COMBINATION_EFFORT = 600
FORMULA_EFFORT = 300
FORMULA_CHARACTER_EFFORT = 20
ESTIMATE_EFFORT = 4_000
PARALLELISM_PLAN_EFFORT = 400_000


class AuthoringError(ValueError):
    """Authored text cannot be used: the code of the problem, a sentence, and a hint."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint


class LimitExceededError(ValueError):
    """A file exceeds a limit: reason, hint, and the line if it is known."""

    def __init__(self, message: str, hint: str = "", line: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.line = line


def parsing_effort_of_estimate(estimate_name: str) -> int:
    """Return the effort of one estimate; the parallelism planner tries hundreds of plans."""
    is_planner = estimate_name.replace("_", "-") == "parallelism-plan"
    return PARALLELISM_PLAN_EFFORT if is_planner else ESTIMATE_EFFORT


_MOST_SOUGHT = 500_000_000  # Characters searched for the locations of problems.
# An id in an item comment; parts of it may be missing or misspelled.
_CLAIMED_ID = re.compile(
    r"(?:^|[\s<!-])(?:q\w?|id|question)(?:\s*[:;=\uff1a]\s*|[ \t]+)[\"']?"
    rf"({SLUG_LIKE})",
    re.IGNORECASE,
)

ReferenceKind = Literal[
    "objective",
    "source",
    "topic",
    "page",
    "term",
    "file",
    "drawing",
    "picture",
    "day",
    "calculator",
]


@dataclasses.dataclass(frozen=True, slots=True)
class CrossReference:
    """A reference to another file: an objective, a source, a page, a term, a figure.

    A reference to a figure may end in “#” and one of its regions.
    """

    kind: ReferenceKind
    target: str
    line: int
    column: int
    item: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class TextEdit:
    """An edit that `--fix` may make: `old_text` at the position becomes `new_text`."""

    line: int
    column: int
    old_text: str
    new_text: str


class IdInsertion(NamedTuple):
    """How `--fix` writes an id: it replaces `old_text` at the position."""

    position: TextPosition
    old_text: str
    text_before_id: str
    text_after_id: str

    def build_edit(self, new_id: str) -> TextEdit:
        return TextEdit(
            *self.position, self.old_text, f"{self.text_before_id}{new_id}{self.text_after_id}"
        )


@dataclasses.dataclass(frozen=True, slots=True)
class UnidentifiedItem:
    """An item without an id.

    `possible_ids` are words in its comments that may be meant as its id; `heading_hash` and `body_hash`
    are hashes of its text.
    """

    insertion: IdInsertion
    title: str
    possible_ids: tuple[str, ...]
    sketch: tuple[int, ...]
    heading_hash: str
    body_hash: str

    @property
    def sketch_with_comment(self) -> tuple[int, ...]:
        """Return `sketch`: the comment has no id that could be compared."""
        return self.sketch


class BrokenCommentId(NamedTuple):
    """An id in a comment that cannot be read as an item's."""

    id: str
    line: int


@dataclasses.dataclass(slots=True)
class ParseContext:
    """The text of one file, and what was collected while parsing it.

    `current_line` is the parser's current line, as far as it is known; `spent_effort` the parsing effort so far.
    """

    path: str
    text: str
    problems: list[ContentProblem] = dataclasses.field(default_factory=list)
    references: list[CrossReference] = dataclasses.field(default_factory=list)
    edits: list[TextEdit] = dataclasses.field(default_factory=list)
    broken_comment_ids: list[BrokenCommentId] = dataclasses.field(default_factory=list)
    unidentified_items: list[UnidentifiedItem] = dataclasses.field(default_factory=list)
    current_item: str = ""
    current_line: int = 1
    problem_count_before_item: int = 0
    spent_effort: int = 0
    lines: list[str] = dataclasses.field(init=False)
    _line_offsets: list[int] = dataclasses.field(init=False, default_factory=list)
    _searched_characters: int = 0
    _effort_counted_once: set[str] = dataclasses.field(default_factory=set)

    def __post_init__(self) -> None:
        self.lines = self.text.split("\n")

    def report(
        self,
        code: str,
        line: int,
        column: int,
        message: str,
        hint: str = "",
        *,
        is_consequence: bool = False,
        hides_rest_of_file: bool = False,
    ) -> None:
        self.spend_parsing_effort(PROBLEM_EFFORT)
        location = ProblemLocation(self.path, max(line, 1), max(column, 1))
        problem = make_problem(
            location,
            code,
            message,
            hint,
            self.current_item,
            is_consequence=is_consequence,
            hides_rest_of_file=hides_rest_of_file,
        )
        self.problems.append(problem)

    def report_parsing_failure(self, error: Exception, subject: str, line: int = 0) -> None:
        """Report that something could not be parsed after an unexpected error; never raises."""
        location = ProblemLocation(self.path, max(line or self.current_line, 1))
        if isinstance(error, LimitExceededError):
            location = ProblemLocation(self.path, error.line or location.line)
            problem = make_problem(location, "E88", error.message, error.hint, self.current_item)
        else:
            problem = log_error_and_make_problem(location, subject, error, self.current_item)
        self.problems.append(problem)

    def add_reference(self, kind: ReferenceKind, target: str, line: int, column: int) -> None:
        self.references.append(CrossReference(kind, target, line, column, self.current_item))

    def record_broken_comment_id(self, comment: str, line: int) -> None:
        """Record the id named in a broken comment, which may be the id of its item."""
        match = _CLAIMED_ID.search(comment)
        if match and len(match[1]) <= LONGEST_ID:
            self.broken_comment_ids.append(BrokenCommentId(slugify(match[1]), line))

    def spend_parsing_effort(self, effort: float, count_once_under_name: str = "") -> None:
        """Add parsing effort; raises LimitExceededError if the file exceeds the limit.

        Work whose result is cached has a name in `count_once_under_name`, and counts once.
        """
        if count_once_under_name:
            if count_once_under_name in self._effort_counted_once:
                return
            self._effort_counted_once.add(count_once_under_name)
        self.spent_effort += int(effort)
        if self.spent_effort > MOST_EFFORT:
            message = "This file has too many problems, formulas and figures to be read."
            raise LimitExceededError(message, "Split it into several topics.", self.current_line)

    def report_at_text(
        self,
        code: str,
        searched_text: str,
        first_line: int,
        last_line: int,
        message: str,
        hint: str = "",
    ) -> None:
        """Report a problem at `searched_text` in these lines, or at the first of them."""
        self.report(code, *self.locate_text(searched_text, first_line, last_line), message, hint)

    def locate_text(self, searched_text: str, first_line: int, last_line: int) -> TextPosition:
        """Return the position of `searched_text` in these lines (from 1), or of the first one."""
        if not self._line_offsets:
            lengths = (len(line) + 1 for line in self.lines)
            self._line_offsets = [0, *itertools.accumulate(lengths)]
        start, end = self._line_start_offset(first_line), self._line_start_offset(last_line + 1)
        if start >= end or self._searched_characters > _MOST_SOUGHT:
            return TextPosition(first_line, 1)
        offset = self.text.find(searched_text, start, end)
        self._searched_characters += (end if offset < 0 else offset) - start
        if offset < 0:
            return TextPosition(first_line, 1)
        line = bisect.bisect_right(self._line_offsets, offset)
        return TextPosition(line, offset - self._line_offsets[line - 1] + 1)

    def _line_start_offset(self, line: int) -> int:
        return self._line_offsets[min(max(line, 1), len(self._line_offsets)) - 1]


def make_reference_problem(
    path: str, reference: CrossReference, code: str, message: str, hint: str = ""
) -> ContentProblem:
    location = ProblemLocation(path, reference.line, reference.column)
    return make_problem(location, code, message, hint, reference.item)


def locate_toml_value(key: str, parse_context: ParseContext, first_line: int = 1) -> TextPosition:
    """Return the position of a TOML key's value, searching from line `first_line`.

    A key in a comment is ignored; a key in an inline table is found.
    """
    setting = re.compile(rf"^\s*{re.escape(key)}\s*=\s*")
    for line, text in enumerate(parse_context.lines[first_line - 1 :], first_line):
        if match := setting.match(text):
            return TextPosition(line, match.end() + 1)
    return parse_context.locate_text(key, first_line, len(parse_context.lines))


# With these codes the whole file is unread, if the problem names no item.
_CODES_OF_UNREAD_FILES = frozenset({"E00", "E88"})
# Course-wide files, and the codes of problems that follow if one is unread.
_CODES_BY_REGISTER = {
    "syllabus.toml": frozenset({"E14", "E70", "E71", "W36", "W73"}),
    "sources.toml": frozenset({"E86"}),
    "shared/sources.toml": frozenset({"E86"}),
    "glossary.md": frozenset(),
    "shared/glossary.md": frozenset(),
}
# counts that are wrong if parts of the course are unread
_CODES_OF_COUNTS = frozenset({"E71", "W73"})
_BROKEN_COMMENT = frozenset({"E10", "E11"})  # the item of such a comment is not missing
_QUOTED_NAME = re.compile(r"“([^”]*)”")
# items from which they are reported together, and how many are named
_MIN_GROUPED_PROBLEMS, _MAX_NAMED_ITEMS = 3, 3


def drop_and_merge_consequential_problems(
    problems: Iterable[ContentProblem],
) -> list[ContentProblem]:
    """Return the problems without those that follow from another one.

    They are reported once the other one is corrected.
    """
    problems = _drop_problems_caused_by_others(list(problems))
    unread_paths = {p.path for p in problems if _leaves_file_unread(p)}
    unread_topics = {topic_slug_of_path(path) for path in unread_paths} - {""}
    errors = (p for p in problems if p.severity == "error" and not p.is_consequence)
    broken_topics = {topic_slug_of_path(p.path) for p in errors} - {""}
    consequential_codes = frozenset[str]().union(
        *(_CODES_BY_REGISTER.get(path, ()) for path in unread_paths)
    )
    if unread_topics:
        consequential_codes |= {"E06"}  # an item in an unread file is not missing
    if broken_topics or sum(p.code == "E06" for p in problems) >= _MIN_GROUPED_PROBLEMS:
        consequential_codes |= _CODES_OF_COUNTS
    # E06 names the id that an item lost: E01 must not ask for a new one there.
    lines_without_id = {
        (p.path, line) for p in problems if p.code == "E06" for line in (p.line, p.line + 1)
    }
    problems = [p for p in problems if p.code != "E01" or (p.path, p.line) not in lines_without_id]
    broken_items = {p.item for p in problems if p.code in _BROKEN_COMMENT and p.item}
    return _merge_problems_of_one_cause(
        p
        for p in dict.fromkeys(problems)
        if _leaves_file_unread(p)
        or not (
            p.code in consequential_codes
            or (p.code == "W87" and topic_slug_of_path(p.path) in broken_topics)
            or (p.code == "E06" and p.item in broken_items)
            or (p.code in {"E61", "W36"} and _message_names_topic(p, unread_topics))
        )
    )


def topic_slug_of_path(path: str) -> str:
    """Return the topic of a file; empty for files of the whole course."""
    return path.split("/")[1] if path.startswith("topics/") else ""


def _message_names_topic(problem: ContentProblem, topics: set[str]) -> bool:
    """Return whether a quoted slug or link in the message refers to one of the topics."""
    quoted = _QUOTED_NAME.findall(problem.message)
    return any(name.removeprefix("/concepts/").partition("#")[0] in topics for name in quoted)


def _drop_problems_caused_by_others(problems: list[ContentProblem]) -> list[ContentProblem]:
    """Drop problems below an unclosed block, and those that another error of the item or file explains."""
    unread_from_line = {p.path: p.line for p in problems if p.hides_rest_of_file}
    errors = {(p.path, p.item) for p in problems if p.severity == "error" and not p.is_consequence}
    return [
        p
        for p in problems
        if p.line <= unread_from_line.get(p.path, p.line)
        and not (p.is_consequence and not errors.isdisjoint({(p.path, ""), (p.path, p.item)}))
    ]


def _leaves_file_unread(problem: ContentProblem) -> bool:
    if problem.path in _CODES_BY_REGISTER and problem.code in {"E03", "E10", "E11"}:
        return True
    return problem.code in _CODES_OF_UNREAD_FILES and not problem.item


def _merge_problems_of_one_cause(problems: Iterable[ContentProblem]) -> list[ContentProblem]:
    """Merge the problems of many missing items, and of many ids that are not locked.

    A broken drawing is reported once, even if several items show it.
    """
    by_cause: dict[object, ContentProblem] = {}
    for problem in reversed(list(problems)):
        is_drawing = problem.code == "E58" and problem.path.endswith(".svg")
        by_cause[(problem.path, problem.message) if is_drawing else problem] = problem
    problems = list(by_cause.values())[::-1]
    missing = [p for p in problems if p.code == "E06" and p.path == "ids.lock"]
    if len(missing) >= _MIN_GROUPED_PROBLEMS:
        message = f"{len(missing)} items are gone and were not retired: {_format_first_item_names(missing)}."
        hint = "If a file was deleted or renamed, bring it back; else write the date of today "
        hint += "in place of the “-” of each."
        merged = dataclasses.replace(missing[0], message=message, hint=hint, item="")
        problems = [merged, *(p for p in problems if p not in missing)]
    unlocked = sorted(p for p in problems if p.code == "W97")
    if len(unlocked) >= _MIN_GROUPED_PROBLEMS:
        message = f"{len(unlocked)} ids are not in ids.lock yet, so that nothing guards them: "
        message += f"{_format_first_item_names(unlocked)}."
        merged = dataclasses.replace(unlocked[0], message=message, item="")
        problems = [merged, *(p for p in problems if p.code != "W97")]
    return problems


def _format_first_item_names(problems: list[ContentProblem]) -> str:
    """Return the names of the first few items, and how many more there are."""
    names = ", ".join(f"“{p.item}”" for p in problems[:_MAX_NAMED_ITEMS])
    more = (
        f" and {len(problems) - _MAX_NAMED_ITEMS} more" if len(problems) > _MAX_NAMED_ITEMS else ""
    )
    return f"{names}{more}"
