"""Plain tables of choices, as people keep them in a spreadsheet: one row, one question.

The first row names the columns: question, answer, feedback, and a column for each
choice, named by its letter. CSV and TSV are read as text, XLSX, XLS and ODS by a
library.
"""

import csv
import dataclasses
import io
import re
from collections.abc import Iterator, Mapping, Sequence

from app.exchange.formats.archive import unpacking
from app.exchange.formats.decoding import MOST_BYTES, decode
from app.exchange.formats.plain_answers import bare, kind_of, named_in
from app.exchange.formats.workbook import rows_of
from app.exchange.items import (
    Item,
    Kind,
    NotCarried,
    Option,
    Reading,
    Remark,
    Unusable,
    label,
)
from app.exchange.markup.hypertext import from_plain

_MOST_ROWS = 20_000
_LETTER = re.compile(r"(?:(?:option|choice|answer)[ _-]?)?([a-z])")
_REASON = re.compile(r"(?:feedback|reason|comment)[ _-]([a-z])")
_NAMES = {
    "question": ("question", "question text", "stem", "prompt"),
    "answer": ("answer", "correct", "correct answer", "right answer", "key"),
    "explanation": ("feedback", "explanation", "general feedback", "reason"),
    "difficulty": ("difficulty",),
    "objectives": ("objective", "objectives"),
    "tags": ("tags", "tag"),
    "hint": ("hint",),
}
_COLUMNS = {word: name for name, words in _NAMES.items() for word in words}
_OLD_EXCEL = b"\xd0\xcf\x11\xe0"
Row = tuple[int, Sequence[str]]


@dataclasses.dataclass(frozen=True, slots=True)
class _Heads:
    """Where each column stands: by name, by the letter of a choice, and of a reason."""

    named: Mapping[str, int]
    choices: Mapping[str, int]
    reasons: Mapping[str, int]
    unknown: tuple[str, ...]


def read_spreadsheet(data: bytes) -> Reading:
    """The questions of a table; raises Unusable."""
    rows = _cells_of_book(data) if data[:4] in {b"PK\3\4", _OLD_EXCEL} else _lines(data)
    first = next(rows, None)
    if first is None:
        raise Unusable("The table is empty.")
    heads = _heads(first[1])
    items: list[Item] = []
    refused: list[Remark] = []
    for number, cells in rows:
        if number > _MOST_ROWS:
            raise Unusable(f"The table has more than {_MOST_ROWS:,} rows.")
        row = _Row(heads, cells, number)
        if not any(cells):
            continue
        try:
            items.append(row.item())
        except NotCarried as error:
            name = " ".join(row.cell("question").split())[:50]
            refused.append(Remark(name or "(nameless)", number, str(error)))
    lost = [
        Remark(label(item), item.line, f"the column “{name}” is not read")
        for name in heads.unknown
        for item in items[:1]
    ]
    return Reading(tuple(items), tuple(refused), tuple(lost))


def _lines(data: bytes) -> Iterator[Row]:
    text = decode(data)
    head = text.partition("\n")[0]
    sign = max((",", ";", "\t"), key=head.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=sign)
    try:
        for row in reader:
            yield reader.line_num, [cell.strip() for cell in row]
    except csv.Error:
        why = f"its line {reader.line_num} cannot be parted into cells"
        raise Unusable(f"The table cannot be read: {why}.") from None


def _cells_of_book(data: bytes) -> Iterator[Row]:
    """The rows of the first sheet that has any."""
    refusal = "The spreadsheet cannot be read"
    if len(data) > MOST_BYTES:
        raise Unusable(f"{refusal}: it is larger than {MOST_BYTES // 1_000_000} MB.")
    if data.startswith(b"PK"):
        with unpacking(io.BytesIO(data), refusal):
            pass  # it neither grows too much nor leaves its folder
    yield from enumerate(rows_of(data, refusal), 1)


def _heads(cells: Sequence[str]) -> _Heads:
    named: dict[str, int] = {}
    choices: dict[str, int] = {}
    reasons: dict[str, int] = {}
    unknown: list[str] = []
    for place, cell in enumerate(cells):
        word = " ".join(cell.lower().split())
        if not word:
            continue
        letter, reason = _LETTER.fullmatch(word), _REASON.fullmatch(word)
        if word in _COLUMNS:
            named.setdefault(_COLUMNS[word], place)
        elif letter:
            choices.setdefault(letter[1].upper(), place)
        elif reason:
            reasons.setdefault(reason[1].upper(), place)
        else:
            unknown.append(cell)
    for wanted in ("question", "answer"):
        if wanted not in named:
            found = ", ".join(f"“{cell}”" for cell in cells if cell)[:200]
            raise Unusable(
                f"The first row must name the columns; there is no “{wanted}” among "
                f"{found or 'them'}."
            )
    return _Heads(named, choices, reasons, tuple(unknown))


@dataclasses.dataclass(frozen=True, slots=True)
class _Row:
    heads: _Heads
    cells: Sequence[str]
    line: int

    def cell(self, name: str) -> str:
        """The cell of a named column, empty where there is none."""
        return self._at(self.heads.named.get(name, -1))

    def _at(self, place: int) -> str:
        return self.cells[place] if 0 <= place < len(self.cells) else ""

    def item(self) -> Item:
        """The question of this row; raises NotCarried."""
        if not self.cell("question"):
            raise NotCarried("it has no question")
        if not self.cell("answer"):
            raise NotCarried("it has no answer")
        choices = {
            letter: self._at(place)
            for letter, place in self.heads.choices.items()
            if self._at(place)
        }
        kind, options = self._choice(choices) if choices else bare(self.cell("answer"))
        return Item(
            "",
            kind,
            from_plain(self.cell("question")),
            options,
            explanation=from_plain(self.cell("explanation")),
            hints=(from_plain(self.cell("hint")),) if self.cell("hint") else (),
            difficulty=self._difficulty(),
            objectives=_listed(self.cell("objectives")),
            tags=_listed(self.cell("tags")),
            line=self.line,
        )

    def _choice(self, choices: Mapping[str, str]) -> tuple[Kind, tuple[Option, ...]]:
        right = named_in(self.cell("answer"), choices)
        options = tuple(
            Option(
                from_plain(words),
                letter in right,
                from_plain(self._at(self.heads.reasons.get(letter, -1))),
            )
            for letter, words in choices.items()
        )
        return kind_of(options), options

    def _difficulty(self) -> int:
        word = self.cell("difficulty")
        if not word:
            return 3
        if word not in {"1", "2", "3", "4", "5"}:
            raise NotCarried(f"its difficulty “{word[:20]}” is not one of 1 to 5")
        return int(word)


def _listed(cell: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in re.split(r"[,;]", cell) if part.strip())
