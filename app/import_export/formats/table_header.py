"""Recognize the columns of a table: question, choices, key."""

import dataclasses
import re
from collections.abc import Mapping, Sequence

_LABEL = r"(?P<label>(?<= )[a-z]|\d{1,2})"
_CHOICE = re.compile(
    rf"(?:(?:possible|answer|response) )?"
    rf"(?:option|opt|choice|answer|ans|response|alternative|alt) ?{_LABEL}"
    r"|(?P<letter>[a-z])"
)
_WRONG = re.compile(
    rf"(?:incorrect|wrong|false) (?:answer|option|choice|response)(?: ?{_LABEL})?"
    r"|(?:incorrect|wrong|distractor)(?: [a-z]| ?\d{1,2})"
)
_NOTE = r"(?:feedback|reason|comment|explanation|rationale)"
_REASON = re.compile(rf"{_NOTE}(?: (?:for|to))?(?: (?:option|choice|answer))? ?{_LABEL}")
_REASON_BEHIND = re.compile(rf"(?:(?:option|choice|answer) ?)?(?P<label>[a-z]|\d{{1,2}}) {_NOTE}")
_NAMES = {
    "question": r"questions?(?: text| stem)?|stem|prompt",
    "answer": r"answers?|correct|(?:answer )?key"
    r"|(?:correct|right) (?:answers?|options?|choices?|response)",
    "explanation": r"(?:general )?feedback|(?:answer )?explanation|reason|rationale",
    "type": r"(?:question )?type",
    "difficulty": "difficulty",
    "objectives": "objectives?",
    "tags": "tags?",
    "hint": "hints?",
}
_COLUMN = re.compile("|".join(f"(?P<{name}>{words})" for name, words in _NAMES.items()))
# Columns that are part of neither the question nor its answer.
_ASIDE = re.compile(
    r"#|\b(?:author|bloom|category|chapter|course|date|id|image|img|lesson|level|link"
    r"|marks|media|module|no|notes|nr|number|picture|points|score|source|status"
    r"|subject|time|topic|unit|url|version|week|weight)\b"
)
_ANSWERING = re.compile(
    r"answer|\bans\b|correct|right|wrong|option|\bopt\b|choice|\bkey\b|distract"
    r"|alternativ|solution|response"
)


@dataclasses.dataclass(frozen=True, slots=True)
class TableHeader:
    """The position of each column: by name, by the label of a choice, and of a reason.

    `wrong` are columns of wrong answers, `cells` all titles as written.
    """

    named: Mapping[str, int]
    choices: Mapping[str, int]
    reasons: Mapping[str, int]
    wrong: tuple[int, ...]
    cells: tuple[str, ...]

    def is_read(self, place: int) -> bool:
        """Return whether a column has a known meaning."""
        known = (self.named, self.choices, self.reasons)
        return place in self.wrong or any(place in k.values() for k in known)

    def describe_column(self, place: int) -> str:
        """Return a phrase that names a column."""
        head = self.cells[place] if place < len(self.cells) else ""
        title = " ".join(head.split())[:40]
        return f"“{title}”" if title else f"{_column_letters(place)}, which has no name,"

    def may_hold_answer(self, place: int) -> bool:
        """Return whether an unknown column may hold a choice or an answer."""
        head = self.cells[place] if place < len(self.cells) else ""
        word = _plain_column_name(head)
        twice = _COLUMN.fullmatch(word) or _CHOICE.fullmatch(word)
        return not word or bool(twice or _ANSWERING.search(word))

    def is_metadata(self, place: int) -> bool:
        """Return whether a column holds metadata: a source, a number, a topic.

        A numbered one, such as “Image 1”, may be a choice.
        """
        word = _plain_column_name(self.cells[place]) if place < len(self.cells) else ""
        series = re.search(r"(?:^| )(?:[a-z]|\d{1,2})$|\d$", word)
        return _ASIDE.search(word) is not None and not series


def parse_header(cells: Sequence[str]) -> TableHeader | None:
    """Return the header in a row, or None if it names no question and answer."""
    named: dict[str, int] = {}
    choices: dict[str, int] = {}
    reasons: dict[str, int] = {}
    wrong: list[int] = []
    for place, cell in enumerate(cells):
        word = _plain_column_name(cell)
        choice = _CHOICE.fullmatch(word)
        reason = _REASON.fullmatch(word) or _REASON_BEHIND.fullmatch(word)
        column = _COLUMN.fullmatch(word)
        if column and column.lastgroup:
            named.setdefault(column.lastgroup, place)
        elif _WRONG.fullmatch(word):
            wrong.append(place)
        elif choice:
            label = (choice["label"] or choice["letter"]).upper()
            if _is_next(label, choices, single_letter=len(word) == 1):
                choices.setdefault(label, place)
        elif reason:
            reasons.setdefault(reason["label"].upper(), place)
    if not {"question", "answer"} <= named.keys():
        return None
    return TableHeader(named, choices, reasons, tuple(wrong), tuple(cells))


def _is_next(label: str, known: Mapping[str, int], *, single_letter: bool) -> bool:
    """Return whether a label continues the ones before it: all letters, or all numbers.

    A letter `alone` has to be the next one: “N” is not a choice but a number.
    """
    if single_letter:
        return label == chr(ord("A") + len(known))
    return all(other.isdigit() == label.isdigit() for other in known)


def _plain_column_name(cell: str) -> str:
    """Return a title without text in brackets, text after a dash, and capitals.

    >>> _plain_column_name("Answer 1 - max 75 characters"), _plain_column_name("Correct_Answer(s)*")
    ('answer 1', 'correct answer')
    """
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", cell)  # “OptionA”
    parted = re.sub(r"\(([a-rA-R]|\d{1,2})\)", r" \1", parted)  # “Option (A)”
    bare = re.sub(r"\([^)]*\)|[*:?\"]|\.(?=\s)", " ", parted.lower())
    bare = re.split(r"\s[-\u2013\u2014]\s", f"{bare} ")[0]
    return " ".join(re.sub("[_-]", " ", bare).split()).rstrip(").")


def _column_letters(place: int) -> str:
    """Return a column's letters, as spreadsheets name it: A, AB."""
    name, number = "", place + 1
    while number:
        number, rest = divmod(number - 1, 26)
        name = chr(ord("A") + rest) + name
    return name
