"""Our own spreadsheet: one row per question, in columns that people can edit.

Cells hold Markdown. The column `question (Markdown)` marks such a table; without it a table is read
as a plain one. An order has its steps in A, B, C … and their letters in `answer`, a match its
pairs as `left → right` and its titles in `answer`, a cloze its blanks in the question.
"""

import io
import re
import string
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast, get_args
from xml.sax.saxutils import escape

from app.import_export.course_markdown import format_range_as_authored, write_blanks_into_text
from app.import_export.formats.export_losses import convert_items_and_list_losses
from app.import_export.html_to_markdown import format_number_in_letters
from app.import_export.items import (
    BLANK_CHARACTER,
    ExportResult,
    Item,
    ItemBlank,
    ItemOption,
    ItemPair,
    ItemSkippedError,
    Kind,
)
from app.import_export.markdown_text import remove_markdown_escapes
from app.import_export.text_conversion import parse_typed_range_or_none
from app.import_export.xml_files import remove_illegal_characters

QUESTION = "question (Markdown)"
_FIRST_COLUMN_NAMES = ("id", "topic", "type", QUESTION, "answer")
_LAST_COLUMN_NAMES = (
    *("explanation", "mistake", "hint", "difficulty", "objective", "source", "tags"),
    *("use", "level", "partial", "shuffle", "case"),
)
_QUESTION_TYPES = frozenset(get_args(Kind)) - {"card"}
_MATCH_ARROW = " → "
_LONGEST_CELL = 32_767  # of Excel
_OPTION_CREDIT = re.compile(r"([A-Z]{1,2})(?:\s+(\d{1,3}(?:\.\d+)?)\s*%)?")
_BLANK_MARKUP = re.compile(r"\[\[(.*?)\]\]", re.DOTALL)
CellByColumn = dict[str, str]


def write_xlsx(items: tuple[Item, ...]) -> ExportResult:
    """Return a workbook with one row per question."""
    rows, refused, lost = convert_items_and_list_losses(items, _build_item_row, "xlsx")
    most_choices = max(
        (sum(len(name) < 3 and name.isupper() for name in row) for row in rows), default=0
    )
    labels = [format_column_letters(number) for number in range(most_choices)]
    choices = [name for label in labels for name in (label, f"{label} feedback")]
    columns = [*_FIRST_COLUMN_NAMES, *choices, *_LAST_COLUMN_NAMES]
    table = [columns, *([row.get(name, "") for name in columns] for row in rows)]
    return ExportResult(_build_xlsx(table), len(rows), refused, lost)


def _build_item_row(item: Item) -> CellByColumn:
    if item.kind == "card":
        raise ItemSkippedError("a spreadsheet takes questions only")
    row = {
        "id": item.name,
        "topic": item.topic,
        "type": item.kind,
        QUESTION: item.stem,
        "explanation": item.explanation,
        "mistake": item.mistake,
        "hint": "\n\n---\n\n".join(item.hints),
        "difficulty": str(item.difficulty),
        "objective": ", ".join(item.objectives),
        "source": ", ".join(item.sources),
        "tags": ", ".join(item.tags),
        "use": item.use,
        "level": item.level,
        "partial": item.partial,
        "shuffle": "" if item.shuffle else "no",
        "case": "yes" if item.case else "",
        **_build_answer_cells(item),
    }
    if any(len(cell) > _LONGEST_CELL for cell in row.values()):
        raise ItemSkippedError("it is longer than a cell of a spreadsheet")
    return row


def _build_answer_cells(item: Item) -> CellByColumn:
    """Return the cells of the answer: the choices with their feedback, and the key."""
    if item.kind == "cloze":
        text = write_blanks_into_text(item.text, item.blanks)
        return {QUESTION: f"{item.stem}\n\n{text}", "answer": "in the question"}
    if item.kind == "match":
        choices = [
            _LabeledChoice(
                format_column_letters(number), f"{p.left}{_MATCH_ARROW}{p.right}".lstrip(), p.why
            )
            for number, p in enumerate(item.pairs)
        ]
        return {"answer": _MATCH_ARROW.join(item.titles).strip(), **_build_choice_cells(choices)}
    options = (*item.steps, *item.options)
    choices = [
        _LabeledChoice(
            format_column_letters(n),
            format_range_as_authored(o.span) if o.span else o.text,
            o.feedback,
        )
        for n, o in enumerate(options)
    ]
    right = [
        format_column_letters(number) + (f" {100 * option.credit:.7g}%" if option.credit else "")
        for number, option in enumerate(options)
        if number < len(item.steps) or (not item.steps and (option.right or option.credit))
    ]
    return {"answer": ", ".join(right), **_build_choice_cells(choices)}


class _LabeledChoice(NamedTuple):
    label: str
    text: str
    feedback: str


def _build_choice_cells(choices: Iterable[_LabeledChoice]) -> CellByColumn:
    row = {}
    for choice in choices:
        row[choice.label] = choice.text
        row[f"{choice.label} feedback"] = choice.feedback
    return row


def format_column_letters(column: int) -> str:
    """Return the letters of a column, or of a choice: A to Z, then AA, AB and so on."""
    return format_number_in_letters(column + 1, string.ascii_uppercase)


def read_item_of_exported_row(cell_by_column: Mapping[str, str]) -> Item:
    """Return the question of a row; raises ItemSkippedError."""
    row = {name: cell.strip() for name, cell in cell_by_column.items()}
    kind = row.get("type", "") or "single"
    if kind not in _QUESTION_TYPES:
        raise ItemSkippedError(
            f"its type “{kind[:20]}” is none of {', '.join(sorted(_QUESTION_TYPES))}"
        )
    difficulty = parse_difficulty_cell(row.get("difficulty", ""))
    if not row.get(QUESTION):
        raise ItemSkippedError("it has no question")
    return Item(
        row.get("id", ""),
        cast(Kind, kind),
        topic=row.get("topic", ""),
        explanation=row.get("explanation", ""),
        mistake=row.get("mistake", ""),
        hints=tuple(filter(None, row.get("hint", "").split("\n\n---\n\n"))),
        difficulty=difficulty,
        objectives=split_list_cell(row.get("objective", "")),
        sources=split_list_cell(row.get("source", "")),
        tags=split_list_cell(row.get("tags", "")),
        use=row.get("use", ""),
        level=row.get("level", ""),
        partial=row.get("partial", ""),
        shuffle=row.get("shuffle", "") != "no",
        case=row.get("case", "") == "yes",
        **_read_answer_fields(kind, row),
    )


def parse_difficulty_cell(cell: str) -> int:
    """Return a difficulty, 3 if the cell is empty; raises ItemSkippedError."""
    if cell not in {"", "1", "2", "3", "4", "5"}:
        raise ItemSkippedError(f"its difficulty “{cell[:20]}” is not one of 1 to 5")
    return int(cell or 3)


def split_list_cell(cell: str, separators: str = ",") -> tuple[str, ...]:
    return tuple(part.strip() for part in re.split(f"[{separators}]", cell) if part.strip())


def _read_answer_fields(item_kind: str, cell_by_column: Mapping[str, str]) -> dict[str, Any]:
    question = cell_by_column[QUESTION]
    if item_kind == "cloze":
        stem, _, text = question.partition("\n\n")
        blanks = tuple(_parse_blank(match[1]) for match in _BLANK_MARKUP.finditer(text))
        if not blanks:
            raise ItemSkippedError("its question has no blank: write [[answer]] in its text")
        return {"stem": stem, "text": _BLANK_MARKUP.sub(BLANK_CHARACTER, text), "blanks": blanks}
    choices = [
        _LabeledChoice(name, cell, cell_by_column.get(f"{name} feedback", ""))
        for name, cell in cell_by_column.items()
        if cell and _OPTION_CREDIT.fullmatch(name)
    ]
    if item_kind == "match":
        left, _, right = cell_by_column.get("answer", "").partition(_MATCH_ARROW.strip())
        pairs = tuple(map(_read_pair, choices))
        return {"stem": question, "titles": (left.strip(), right.strip()), "pairs": pairs}
    credit_by_label = _parse_credit_by_named_label(
        cell_by_column.get("answer", ""), [choice.label for choice in choices]
    )
    if item_kind == "order":
        options = {
            c.label: ItemOption(c.text, c.label in credit_by_label, c.feedback) for c in choices
        }
        return {
            "stem": question,
            "steps": tuple(options[label] for label in credit_by_label),
            "options": tuple(option for option in options.values() if not option.right),
        }
    scored = tuple(_read_option(item_kind, c, credit_by_label.get(c.label, 0.0)) for c in choices)
    return {"stem": question, "options": scored}


def _parse_credit_by_named_label(answer: str, labels: Sequence[str]) -> dict[str, float]:
    """Return the labels that the answer names in order, each with its credit (1 for right)."""
    key: dict[str, float] = {}
    for part in split_list_cell(answer, ",;"):
        match = _OPTION_CREDIT.fullmatch(part)
        if match is None or match[1] not in labels:
            raise ItemSkippedError(f"its answer “{part[:40]}” names none of its choices")
        key[match[1]] = round(float(match[2]) / 100, 9) if match[2] else 1.0
    if not key:
        raise ItemSkippedError("it has no answer")
    return key


def _read_option(item_kind: str, choice: _LabeledChoice, score: float) -> ItemOption:
    right, credit = score == 1, score if score < 1 else 0.0
    if item_kind != "numeric":
        return ItemOption(choice.text, right, choice.feedback, credit=credit)
    span = parse_typed_range_or_none(choice.text)
    if span is None:
        raise ItemSkippedError(f"its answer “{choice.text[:40]}” is no number: write 140 GB ± 3")
    return ItemOption("", right, choice.feedback, span, credit)


def _read_pair(choice: _LabeledChoice) -> ItemPair:
    left, arrow, right = f" {choice.text}".partition(_MATCH_ARROW)
    if not arrow:
        raise ItemSkippedError(f"its pair “{choice.text[:40]}” has no arrow: write left → right")
    return ItemPair(left.strip(), right.strip(), choice.feedback)


def _parse_blank(authored_blank: str) -> ItemBlank:
    """Return a blank from its authored form: answers, wrong words, a hint."""
    body, _, hint = authored_blank.partition("?")
    accepted, *wrong = re.split(r"(?:^|\s)~(?:\s|$)", body)
    return ItemBlank(
        tuple(remove_markdown_escapes(a.strip()) for a in accepted.split("|") if a.strip()),
        remove_markdown_escapes(hint.strip()),
        tuple(remove_markdown_escapes(w.strip()) for w in wrong if w.strip()),
    )


_XLSX_PART_BY_PATH = {
    "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/'
    'content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.'
    'relationships+xml"/><Default Extension="xml" ContentType="application/xml"/>'
    '<Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-'
    'officedocument.spreadsheetml.sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>'
    "</Types>",
    "_rels/.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/'
    'relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/'
    '2006/relationships/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": '<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    ' xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets>'
    '<sheet name="Questions" sheetId="1" r:id="rId1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/'
    '2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/'
    'officeDocument/2006/relationships/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
}
_XML_DECLARATION = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_FIXED_TIME = (1980, 1, 1, 0, 0, 0)  # so that the same questions give the same file


def _build_xlsx(table: Sequence[Sequence[str]]) -> bytes:
    """Return an XLSX file with one sheet of text cells; the first row stays in view."""
    rows = "".join(
        f'<row r="{number}">{"".join(map(_render_cell_xml, row))}</row>'
        for number, row in enumerate(table, 1)
    )
    sheet = (
        '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
        '<sheetViews><sheetView workbookViewId="0"><pane ySplit="1" topLeftCell="A2" '
        'state="frozen"/></sheetView></sheetViews>'
        f"<sheetData>{rows}</sheetData></worksheet>"
    )
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**_XLSX_PART_BY_PATH, "xl/worksheets/sheet1.xml": sheet}.items():
            entry = zipfile.ZipInfo(name, _FIXED_TIME)
            archive.writestr(entry, _XML_DECLARATION + content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _render_cell_xml(text: str) -> str:
    if not text:
        return "<c/>"
    plain = escape(remove_illegal_characters(text))
    return f'<c t="inlineStr"><is><t xml:space="preserve">{plain}</t></is></c>'
