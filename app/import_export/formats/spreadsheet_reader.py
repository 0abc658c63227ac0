"""Read questions from XLSX, ODS and CSV tables.

A header row names the columns: question, answer, feedback, and a column for each choice, named by
its letter or its number. CSV and TSV are read as text, XLSX and ODS with a library.
"""

import csv
import dataclasses
import functools
import io
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from app.import_export import UnusableFileError
from app.import_export.formats.text_lists import (
    KindAndOptions,
    NamedChoices,
    describe_numbers_read_as_text,
    find_labels_by_label_and_by_text,
    find_labels_named_by_answer,
    infer_choice_kind,
    is_choice_label,
    read_answer_without_choices,
)
from app.import_export.formats.xlsx_table import (
    QUESTION,
    format_column_letters,
    parse_difficulty_cell,
    read_item_of_exported_row,
    split_list_cell,
)
from app.import_export.html_to_markdown import convert_plain_text_to_markdown
from app.import_export.items import ImportResult, Item, ItemOption, ItemSkippedError, Kind
from app.import_export.text_conversion import (
    PicturesAndLosses,
    UnreadItem,
    has_unambiguous_decimal_comma,
    read_items_or_refuse,
)
from app.import_export.workbook_reader import UNREADABLE_CELL_MARK, read_workbook
from app.import_export.xml_files import (
    MAX_XML_BYTES,
    decode_unicode_or_windows_1252,
    open_checked_archive,
)

_OPTION_LABEL_PATTERN = r"(?P<label>(?<= )[a-z]|\d{1,2})"
_OPTION_COLUMN_NAME = re.compile(
    rf"(?:(?:possible|answer|response) )?"
    rf"(?:option|opt|choice|answer|ans|response|alternative|alt) ?{_OPTION_LABEL_PATTERN}"
    r"|(?P<letter>[a-z])"
)
_WRONG_OPTION_COLUMN_NAME = re.compile(
    rf"(?:incorrect|wrong|false) (?:answer|option|choice|response)(?: ?{_OPTION_LABEL_PATTERN})?"
    r"|(?:incorrect|wrong|distractor)(?: [a-z]| ?\d{1,2})"
)
_FEEDBACK_WORDS = r"(?:feedback|reason|comment|explanation|rationale)"
_OPTION_FEEDBACK_COLUMN_NAME = re.compile(
    rf"{_FEEDBACK_WORDS}(?: (?:for|to))?(?: (?:option|choice|answer))? ?{_OPTION_LABEL_PATTERN}"
)
_REASON_BEHIND = re.compile(
    rf"(?:(?:option|choice|answer) ?)?(?P<label>[a-z]|\d{{1,2}}) {_FEEDBACK_WORDS}"
)
_COLUMN_NAME_PATTERNS = {
    "question": r"questions?(?: text| stem)?|stem|prompt",
    "answer": r"answers?|ans|correct(?: ans)?|right|solution|(?:answer )?key"
    r"|(?:correct|right) (?:answers?|options?|choices?|response)",
    "explanation": r"(?:general )?feedback|(?:answer )?explanation|reason|rationale",
    "type": r"(?:question )?type",
    "difficulty": "difficulty",
    "objectives": "objectives?",
    "tags": "tags?",
    "hint": "hints?",
}
_COLUMN_NAME = re.compile(
    "|".join(f"(?P<{name}>{words})" for name, words in _COLUMN_NAME_PATTERNS.items())
)
# Columns that are part of neither the question nor its answer.
_IGNORED_COLUMN_NAME = re.compile(
    r"#|\b(?:author|bloom|category|chapter|course|date|id|image|img|lesson|level|link"
    r"|marks|media|module|no|notes|nr|number|picture|points|score|source|status"
    r"|subject|time|topic|unit|url|version|week|weight)\b"
)
_ANSWER_COLUMN_WORD = re.compile(
    r"answer|\bans\b|correct|right|wrong|option|\bopt\b|choice|\bkey\b|distract"
    r"|alternativ|solution|response"
)


@dataclasses.dataclass(frozen=True, slots=True)
class TableHeader:
    """The index of each column: by name, by the label of a choice or of its reason.

    `titles` are all titles as written.
    """

    column_by_name: Mapping[str, int]
    choice_column_by_label: Mapping[str, int]
    reason_column_by_label: Mapping[str, int]
    wrong_answer_columns: tuple[int, ...]
    titles: tuple[str, ...]

    def is_column_read(self, column: int) -> bool:
        columns = (self.column_by_name, self.choice_column_by_label, self.reason_column_by_label)
        is_known = any(column in known.values() for known in columns)
        return is_known or column in self.wrong_answer_columns

    def describe_column(self, column: int) -> str:
        title = " ".join("".join(self.titles[column : column + 1]).split())[:40]
        return f"“{title}”" if title else f"{format_column_letters(column)}, which has no name,"

    def may_unread_column_hold_answer(self, column: int) -> bool:
        name = _normalize_column_title(self.titles[column])
        names_known_column = _COLUMN_NAME.fullmatch(name) or _OPTION_COLUMN_NAME.fullmatch(name)
        return not name or bool(names_known_column or _ANSWER_COLUMN_WORD.search(name))

    def is_metadata_column(self, column: int) -> bool:
        """Return whether a column holds metadata: a source, a number, a topic.

        A numbered one, such as “Image 1”, may be a choice.
        """
        name = _normalize_column_title(self.titles[column])
        is_numbered = re.search(r"(?:^| )(?:[a-z]|\d{1,2})$|\d$", name)
        return _IGNORED_COLUMN_NAME.search(name) is not None and not is_numbered


def parse_header_or_none(cells: Sequence[str]) -> TableHeader | None:
    """Return the header in a row, or None if it names no question and answer."""
    named: dict[str, int] = {}
    choices: dict[str, int] = {}
    reasons: dict[str, int] = {}
    wrong: list[int] = []
    for column, cell in enumerate(cells):
        word = _normalize_column_title(cell)
        choice = _OPTION_COLUMN_NAME.fullmatch(word)
        reason = _OPTION_FEEDBACK_COLUMN_NAME.fullmatch(word) or _REASON_BEHIND.fullmatch(word)
        known_column = _COLUMN_NAME.fullmatch(word)
        if known_column and known_column.lastgroup:
            named.setdefault(known_column.lastgroup, column)
        elif _WRONG_OPTION_COLUMN_NAME.fullmatch(word):
            wrong.append(column)
        elif choice:
            label = (choice["label"] or choice["letter"]).upper()
            if _fits_label_series(label, choices, must_be_next_letter=len(word) == 1):
                choices.setdefault(label, column)
        elif reason:
            reasons.setdefault(reason["label"].upper(), column)
    if not {"question", "answer"} <= named.keys():
        return None
    return TableHeader(named, choices, reasons, tuple(wrong), tuple(cells))


def _fits_label_series(
    label: str, column_by_earlier_label: Mapping[str, int], *, must_be_next_letter: bool
) -> bool:
    """Return whether a label continues the ones before it: all letters, or all numbers.

    A letter `must_be_next_letter` has to be the next one: “N” is not a choice but a number.
    """
    if must_be_next_letter:
        return label == chr(ord("A") + len(column_by_earlier_label))
    return all(other.isdigit() == label.isdigit() for other in column_by_earlier_label)


def _normalize_column_title(cell: str) -> str:
    """Return a title without text in brackets, text after a dash, and capitals.

    >>> _normalize_column_title("Answer 1 - max 75 characters"), _normalize_column_title("Correct_Answer(s)*")
    ('answer 1', 'correct answer')
    """
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", cell)  # “OptionA”
    spaced = re.sub(r"\(([a-rA-R]|\d{1,2})\)", r" \1", spaced)  # “Option (A)”
    plain = re.sub(r"\([^)]*\)|[*:?\"]|\.(?=\s)", " ", spaced.lower())
    plain = re.split(r"\s[-\u2013\u2014]\s", f"{plain} ")[0]
    return " ".join(re.sub("[_-]", " ", plain).split()).rstrip(").")


_MOST_ROWS = 20_000
_MOST_ROWS_ABOVE_HEADER = 20  # rows in which the header row is searched, below a title
_CSV_SEPARATORS = ",;\t|"
_TOLD_SIGN = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
_OLD_EXCEL = b"\xd0\xcf\x11\xe0"
# Error values of cells, and what a too narrow cell shows.
_SPREADSHEET_ERROR_VALUE = re.compile(
    r"#(?:N/A|NV|REF!|BEZUG!|DIV/0!|NAME\?|VALUE!|WERT!|NUM!|ZAHL!|NULL!|SPILL!|#{3,})"
)
# a number shown with fewer digits than it has
_SHORTENED_NUMBER = re.compile(r"-?\d\.\d{5}E[+-]\d\d")
_MULTIPLE_CHOICE_TYPE = re.compile(r"check ?box|multiple (?:answers?|response|select)|select all")
_CHOICE_TYPE = re.compile(
    rf"{_MULTIPLE_CHOICE_TYPE.pattern}|choice|choose|select|single|multi|quiz|bool|true|drop|radio"
    r"|\b(?:mcq?|tf)\b"
)


class TableRow(NamedTuple):
    """The cells of a row, and its number or the first of its lines in the file."""

    line_number: int
    cells: Sequence[str]


def read_spreadsheet(data: bytes) -> ImportResult:
    """Read the questions of a table; raises UnusableFileError."""
    if data[:4] == _OLD_EXCEL:
        raise UnusableFileError(
            "The spreadsheet cannot be read: it is locked, or an .xls of older "
            "programs, which does not tell how numbers are shown. Save it as .xlsx."
        )
    if data[:2] == b"PK":
        return _read_workbook_questions(data)
    text, guess_note = decode_unicode_or_windows_1252(data)
    declared_separator = _TOLD_SIGN.fullmatch(text.partition("\n")[0].strip())
    separators = declared_separator[1] if declared_separator else _CSV_SEPARATORS
    header, rows_below, table_index = _find_header(
        [_iterate_csv_rows(text, separator) for separator in separators]
    )
    comma = separators[table_index] == ";"
    table = _SheetTable(header, list(rows_below), may_use_decimal_comma=comma)
    return read_items_or_refuse(table.list_unread_items(), *filter(None, (guess_note,)))


def _iterate_csv_rows(text: str, separator: str) -> Iterator[TableRow]:
    """Yield the rows of a text with the number of their first line; `separator` ends a cell."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        line = 1
        for row in reader:
            cells = (cell.strip() for cell in row)
            yield TableRow(line, [_mark_if_cell_error(cell) for cell in cells])
            line = reader.line_num + 1
    except csv.Error:
        reason = f"its line {reader.line_num} cannot be split into cells"
        raise UnusableFileError(
            f"The table cannot be read: {reason}. A quotation mark that begins a cell "
            "also ends it; double those inside of it."
        ) from None


def _mark_if_cell_error(cell: str) -> str:
    if _SHORTENED_NUMBER.fullmatch(cell):
        return f"{UNREADABLE_CELL_MARK}is “{cell}”, which a spreadsheet shortened"
    return (
        f"{UNREADABLE_CELL_MARK}shows the error {cell[:20]}"
        if _SPREADSHEET_ERROR_VALUE.fullmatch(cell)
        else cell
    )


def _find_header(
    tables: Sequence[Iterator[TableRow]],
) -> tuple[TableHeader, Iterator[TableRow], int]:
    """Return the first header at the top of one of these tables, the rows below it, and its index."""
    longest_row: Sequence[str] = ()
    first_error: UnusableFileError | None = None
    for table_index, rows in enumerate(tables):
        try:
            for _, cells in itertools.islice(rows, _MOST_ROWS_ABOVE_HEADER):
                if header := parse_header_or_none(cells):
                    return header, rows, table_index
                longest_row = cells if len(cells) > len(longest_row) and any(cells) else longest_row
        except UnusableFileError as error:
            first_error = first_error or error
    if first_error or not longest_row:
        raise first_error or UnusableFileError("The table is empty.")
    column_names = ", ".join(f"“{cell}”" for cell in longest_row if cell)[:200]
    missing = "answer" if "question" in (cell.lower() for cell in longest_row) else "question"
    raise UnusableFileError(
        f"A row at the top must name the columns; there is no “{missing}” among {column_names}."
    )


# --- workbooks ---


def _read_workbook_questions(data: bytes) -> ImportResult:
    """Read the questions of every visible sheet with a header row."""
    error_prefix = "The spreadsheet cannot be read"
    if len(data) > MAX_XML_BYTES:
        raise UnusableFileError(
            f"{error_prefix}: it is larger than {MAX_XML_BYTES // 1_000_000} MB."
        )
    with open_checked_archive(io.BytesIO(data), error_prefix):
        pass  # checks that it does not expand too much or leave its folder
    book = read_workbook(data, error_prefix)
    notes = [f"The hidden sheet “{name}” is not read." for name in book.hidden_names]
    tables: dict[str, _SheetTable] = {}
    first_error: UnusableFileError | None = None
    for name, cells in book.sheets:
        try:
            rows = (TableRow(number, row) for number, row in enumerate(cells, 1))
            header, rows_below, _ = _find_header([rows])
        except UnusableFileError as error:
            first_error = first_error or error
            notes.append(f"The sheet “{name}” is not read. {error}")
            continue
        tables[name] = _SheetTable(header, list(rows_below))
    if not tables:
        raise first_error or UnusableFileError("The table is empty.")
    sources = (
        source
        for name, table in tables.items()
        for source in table.list_unread_items(f"{name}: " if len(tables) > 1 else "")
    )
    return read_items_or_refuse(sources, *notes)


# --- rows ---


class _SheetTable:
    """The rows below the header, and how their answers are to be read."""

    def __init__(
        self, header: TableHeader, rows: Iterable[TableRow], *, may_use_decimal_comma: bool = False
    ) -> None:
        # Concatenated tables repeat the header row.
        self.rows = [
            _SheetRow(header, cells, line)
            for line, cells in rows
            if any(cells) and tuple(cells) != header.titles
        ]
        if self.rows and self.rows[-1].line_number > _MOST_ROWS:
            raise UnusableFileError(f"The table has more than {_MOST_ROWS:,} rows.")
        typed = (row.readable_cell_or_empty("answer") for row in self.rows if not row.has_choices())
        self.may_use_decimal_comma = may_use_decimal_comma or any(
            map(has_unambiguous_decimal_comma, typed)
        )
        named = [row.find_choices_named_by_answer() for row in self.rows if row.has_choices()]
        # Some answers can only be labels, and none only text.
        self.answers_are_labels = any(
            n.labels_named_by_label and not n.labels_named_by_text for n in named
        ) and not any(n.labels_named_by_text and not n.labels_named_by_label for n in named)

    def list_unread_items(self, prefix: str = "") -> Iterator[UnreadItem]:
        """Yield the questions; `prefix` stands before their names in reports."""
        for row in self.rows:
            name = " ".join(row.readable_cell_or_empty("question").split())[:50] or "(nameless)"
            read = functools.partial(row.read_item, self)
            is_of_own_format = QUESTION in row.header.titles
            yield UnreadItem(
                f"{prefix}{name}",
                row.line_number,
                row.read_exported_item if is_of_own_format else read,
            )


@dataclasses.dataclass(frozen=True, slots=True)
class _SheetRow:
    header: TableHeader
    cells: Sequence[str]
    line_number: int

    def readable_cell_or_empty(self, column: str | int) -> str:
        """Return the cell of a column, empty if it is missing or has an error."""
        try:
            return self.require_readable_cell(column)
        except ItemSkippedError:
            return ""

    def require_readable_cell(self, column: str | int) -> str:
        """Return the cell of a column, given by name or index; empty if it is missing.

        Raises ItemSkippedError for a cell with an error.
        """
        at = self.header.column_by_name.get(column, -1) if isinstance(column, str) else column
        cell = self.cells[at] if 0 <= at < len(self.cells) else ""
        if cell.startswith(UNREADABLE_CELL_MARK):
            name, fault = self.header.describe_column(at), cell.removeprefix(UNREADABLE_CELL_MARK)
            raise ItemSkippedError(f"its cell under {name} {fault}: write its words instead")
        return cell

    def read_exported_item(self, _losses: PicturesAndLosses) -> Item:
        """Return the question of a row of a table that we wrote."""
        titles = enumerate(self.header.titles)
        return read_item_of_exported_row(
            {title: self.require_readable_cell(column) for column, title in titles if title}
        )

    def has_choices(self) -> bool:
        return any(
            column < len(self.cells) and self.cells[column]
            for column in self.header.choice_column_by_label.values()
        )

    def find_choices_named_by_answer(self) -> NamedChoices:
        """Return no choices for true or false, which authors write out in tables with letters."""
        answer = self.readable_cell_or_empty("answer")
        try:
            if answer.casefold() not in {"true", "false"}:
                choices = self._map_labels_to_filled_choices(self.readable_cell_or_empty)
                return find_labels_by_label_and_by_text(answer, choices)
        except ItemSkippedError:
            pass
        return NamedChoices()

    def _map_labels_to_filled_choices(self, read_cell: Callable[[int], str]) -> dict[str, str]:
        columns = self.header.choice_column_by_label.items()
        return {label: text for label, column in columns if (text := read_cell(column))}

    def read_item(self, table: _SheetTable, _losses: PicturesAndLosses) -> Item:
        """Return the question of this row of a table; raises ItemSkippedError."""
        if not self.require_readable_cell("question"):
            raise ItemSkippedError("it has no question")
        losses = tuple(self._describe_harmless_unread_cells())
        try:
            kind, options = self._read_answer(table)
        except ItemSkippedError as error:
            raise ItemSkippedError("; ".join((str(error), *losses))) from None
        hint = convert_plain_text_to_markdown(self.require_readable_cell("hint"))
        return Item(
            "",
            kind,
            convert_plain_text_to_markdown(self.require_readable_cell("question")),
            options,
            explanation=convert_plain_text_to_markdown(self.require_readable_cell("explanation")),
            hints=(hint,) if hint else (),
            difficulty=parse_difficulty_cell(self.require_readable_cell("difficulty")),
            objectives=split_list_cell(self.require_readable_cell("objectives"), ",;"),
            tags=split_list_cell(self.require_readable_cell("tags"), ",;"),
            lost=(
                *losses,
                *self._describe_loss_of_declared_type(kind, options),
                *describe_numbers_read_as_text(kind, options),
            ),
        )

    def _describe_harmless_unread_cells(self) -> Iterator[str]:
        """Yield remarks on cells in columns that are not read; raises ItemSkippedError.

        It raises if such a cell may be a choice or an answer, because the question would be a
        different one without it.
        """
        offers_choices = self.has_choices() or any(
            map(self.readable_cell_or_empty, self.header.wrong_answer_columns)
        )
        for column, cell in enumerate(self.cells):
            is_row_number = cell.isdigit() and column < self.header.column_by_name["question"]
            if not cell or self.header.is_column_read(column):
                continue
            if column >= len(self.header.titles):
                raise ItemSkippedError(
                    "it has more cells than the table has columns: write words with "
                    "a comma between quotation marks"
                )
            name = self.header.describe_column(column)
            is_harmless = offers_choices or self.header.is_metadata_column(column)
            if (
                self.header.may_unread_column_hold_answer(column) or not is_harmless
            ) and not is_row_number:
                raise ItemSkippedError(
                    f"the column {name} is not read and may hold a choice or an answer:"
                    " name the choices A, B, C … or Option 1, Option 2 …, or take the "
                    "column out"
                )
            yield f"the column {name} is not read: copy it by hand if it is needed"

    def _read_answer(self, table: _SheetTable) -> KindAndOptions:
        answer = self.require_readable_cell("answer")
        if not answer:
            raise ItemSkippedError("it has no answer")
        if self.has_choices():
            return self._read_choices(answer, answers_are_labels=table.answers_are_labels)
        return self._build_choices_from_wrong_answer_columns(answer) or read_answer_without_choices(
            answer, may_use_decimal_comma=table.may_use_decimal_comma
        )

    def _read_choices(self, answer: str, *, answers_are_labels: bool) -> KindAndOptions:
        choices = self._map_labels_to_filled_choices(self.require_readable_cell)
        if any(map(self.readable_cell_or_empty, self.header.wrong_answer_columns)):
            raise ItemSkippedError("it has choices and wrong answers beside them: keep one")
        right = find_labels_named_by_answer(answer, choices, prefer_labels=answers_are_labels)
        reason_columns = self.header.reason_column_by_label
        options = tuple(
            ItemOption(
                convert_plain_text_to_markdown(text),
                label in right,
                convert_plain_text_to_markdown(
                    self.require_readable_cell(reason_columns.get(label, -1))
                ),
            )
            for label, text in choices.items()
        )
        return KindAndOptions(infer_choice_kind(options), options)

    def _build_choices_from_wrong_answer_columns(self, answer: str) -> KindAndOptions | None:
        """Return the answer and the wrong answers as choices, if there are any."""
        columns = self.header.wrong_answer_columns
        wrong = [text for text in map(self.require_readable_cell, columns) if text]
        if answer in wrong:
            raise ItemSkippedError(f"its answer “{answer[:40]}” is among the wrong ones too")
        if is_choice_label(answer) and wrong and not any(map(is_choice_label, wrong)):
            raise ItemSkippedError(
                f"its answer “{answer[:40]}” may be a label of the wrong ones: write "
                "the words of the right answer"
            )
        options = tuple(
            ItemOption(convert_plain_text_to_markdown(text), number == 0)
            for number, text in enumerate((answer, *wrong))
        )
        return KindAndOptions(infer_choice_kind(options), options) if wrong else None

    def _describe_loss_of_declared_type(
        self, kind: Kind, options: Sequence[ItemOption]
    ) -> Iterator[str]:
        """Yield what is lost of the type that the row declares; raises ItemSkippedError."""
        declared_type = self.require_readable_cell("type")
        plain_type = declared_type.lower().replace("-", " ").replace("_", " ")
        is_choice = kind in {"single", "multiple", "true-false"}
        if not declared_type:
            return
        if is_choice != bool(_CHOICE_TYPE.search(plain_type)):
            found_choices = f"{len(options)} choices" if is_choice else "no choices"
            raise ItemSkippedError(
                f"its type is “{declared_type[:40]}”, but it has {found_choices}: correct one"
            )
        if is_choice and _MULTIPLE_CHOICE_TYPE.search(plain_type) and kind != "multiple":
            yield "several boxes could be ticked there; here it is a single choice"
