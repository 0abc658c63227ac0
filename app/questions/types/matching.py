"""Matching questions: match left to right, with decoys."""

import dataclasses
import math
import random
from collections.abc import Iterator, Sequence
from html import escape

from markdown_it.token import Token

from app.markup.html_renderer import render_tokens
from app.markup.markdown_tokens import get_first_line_number, plain_text
from app.markup.model import NO_TEXT, RichText
from app.markup.problems import ParseContext
from app.markup.text import hash_to_four_letters, reduce_to_words
from app.questions.option_parsing import (
    ParsedOption,
    make_step_or_row_key,
    report_if_max_parts_reached,
)
from app.questions.question_type import (
    AuthoredItem,
    CardFacesHtml,
    DraftFields,
    GradeResult,
    LabeledResponse,
    PartResult,
    QuestionType,
    RenderGap,
    ResultColumnTitles,
    SubmittedFields,
    UnreadableResponse,
    first_field_value_or_empty,
    render_feedback,
    render_list_items,
    score_by_right_parts,
)


@dataclasses.dataclass(frozen=True, slots=True)
class MatchRow:
    """A row of a match table; an empty `left` is a decoy on the right.

    `key` names the left cell, `answer` the right one. Equal right cells share one
    `answer`, so they are interchangeable. The keys do not reveal which cells match.
    """

    key: str
    left: RichText
    right: RichText
    why: RichText = NO_TEXT
    answer: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class MatchSpec:
    """Items on the left to be matched with items on the right.

    `shown_left` has keys and `shown_right` answers, each once, in the order displayed
    (empty before drawing).
    """

    left_title: str
    right_title: str
    pairs: tuple[MatchRow, ...]
    shown_left: tuple[str, ...] = ()
    shown_right: tuple[str, ...] = ()

    @property
    def asked_rows(self) -> list[MatchRow]:
        place = {key: index for index, key in enumerate(self.shown_left)}
        rows = [row for row in self.pairs if row.left.plain or row.left.html]
        return sorted(rows, key=lambda row: place.get(row.key, len(place)))


@dataclasses.dataclass(frozen=True, slots=True)
class MatchColumns:
    """The rows, and what they can be matched with, each once, as displayed."""

    left_rows: tuple[MatchRow, ...]
    right_rows: tuple[MatchRow, ...]


class MatchingType(QuestionType[MatchSpec]):
    """A table of left, right and optional feedback."""

    name = "match"
    answer_classes = (MatchSpec, MatchRow)
    template = "questions/match.html"
    has_option_boxes = False
    is_each_field_an_answer = True
    supports_partial_credit = True
    credit_rules = ("off", "net", "each")
    form_fields = ("pair.",)
    answer_block_type = "table_open"

    def is_implied_by_block(self, block: Token, options: Sequence[ParsedOption]) -> bool:
        return block.type == self.answer_block_type and not block.level and not options

    def parse_answer(self, authored: AuthoredItem) -> MatchSpec:
        table, item = authored.parts.answer_block, authored.comment.id
        rows = read_table_cells(table)
        titles = [plain_text(cell) for cell in rows[0]] if rows else []
        pairs: list[MatchRow] = []
        taken: set[str] = set()
        for row in rows[1:]:
            if report_if_max_parts_reached(
                pairs, "pairs", get_first_line_number(table[0]), authored.parse_context
            ):
                break
            left, right, reason = (
                render_tokens(row[i], authored.context) if i < len(row) else NO_TEXT
                for i in range(3)
            )
            name = make_step_or_row_key(item, f"left {reduce_to_words(left.plain)}", taken)
            answer = hash_to_four_letters(item, f"right {reduce_to_words(right.plain)}")
            pairs.append(MatchRow(name, left, right, reason, answer))
        padded = [*titles, "", ""]
        return MatchSpec(padded[0], padded[1], tuple(pairs))

    def report_answer_problems(self, answer: MatchSpec, authored: AuthoredItem) -> None:
        table, parse_context = authored.parts.answer_block, authored.parse_context
        if not table:
            _report_missing_table(authored)
            return
        at = get_first_line_number(table[0])
        width = len(read_table_cells(table)[0])
        if width not in {2, 3}:
            columns = f"{width} column{'s' * (width != 1)}"
            message = f"The table has {columns}; it needs two or three."
            hint = "Write left, right and, if you like, why."
            parse_context.report("E52", at, 1, message, hint)
            return
        if sum(bool(p.left.html) for p in answer.pairs) < 2:
            message = "The table has fewer than two pairs."
            parse_context.report("E52", at, 1, message, "Add a row.")
        _report_rows_without_right_cell(answer, at, parse_context)
        _report_repeated_cells(answer, at, parse_context)
        tables = [t for t in authored.source.body if t.type == "table_open" and not t.level]
        if len(tables) > 1:
            message = "A second table stands behind the first, and is no part of it."
            hint = "Write all pairs into one table; an explanation goes below [!NOTE]."
            parse_context.report("E52", get_first_line_number(tables[1]), 1, message, hint)

    def answer_key_fingerprint_texts(self, answer: MatchSpec) -> list[str]:
        """Return the matches, sorted, so that the order of the rows is ignored."""
        rows = [pair for pair in answer.pairs if pair.left.html]
        return sorted(
            f"/ {_cell_text_or_html(p.left)} = {_cell_text_or_html(p.right)}" for p in rows
        )

    def shuffle_options(self, answer: MatchSpec, rng: random.Random) -> MatchSpec:
        lefts = [p.key for p in answer.pairs if p.left.html]
        rights = list(dict.fromkeys(p.answer for p in answer.pairs if p.right.html))
        rng.shuffle(lefts)
        rng.shuffle(rights)
        return dataclasses.replace(answer, shown_left=tuple(lefts), shown_right=tuple(rights))

    def build_template_data(self, answer: MatchSpec, draft_fields: DraftFields) -> MatchColumns:
        del draft_fields
        rows = {p.key: p for p in answer.pairs if p.left.plain or p.left.html}
        cells = {p.answer: p for p in answer.pairs}
        return MatchColumns(
            tuple(rows[k] for k in answer.shown_left or rows if k in rows),
            tuple(cells[a] for a in answer.shown_right or sorted(cells)),
        )

    def grade(
        self, answer: MatchSpec, raw: SubmittedFields, credit_rule: str
    ) -> GradeResult | UnreadableResponse:
        """Grade a matching; `pair.KEY` in the response contains the answer to each row.

        Each row counts the same unless the item is all or nothing. With `net`, a wrong row
        cancels a right one, and an empty row counts as nothing.
        """
        rows = answer.asked_rows
        known = {pair.answer: pair.right for pair in answer.pairs}
        given = {r.key: first_field_value_or_empty(raw, f"pair.{r.key}") for r in rows}
        given = {name: value if value in known else "" for name, value in given.items()}
        if not any(given.values()):
            return UnreadableResponse("Nothing is matched.", "Choose a match for each row.")
        good = sum(given[row.key] == row.answer for row in rows)
        wrong = sum(given[row.key] not in {"", row.answer} for row in rows)
        said, is_net = f"{good} of {len(rows)} rows right", credit_rule in {"net", "coverage"}
        return GradeResult(
            score=score_by_right_parts(good - wrong if is_net else good, len(rows), credit_rule),
            score_basis=f"{good} right less {wrong} wrong, of {len(rows)} rows" if is_net else said,
            parsed_response={"pairs": given},
            part_results=tuple(_grade_row(row, given[row.key], known) for row in rows),
            given_answer=said,
        )

    def describe_missing_input(
        self, answer: MatchSpec, raw: SubmittedFields, stem: RichText
    ) -> str:
        del stem
        rows = answer.asked_rows
        empty = sum(not first_field_value_or_empty(raw, f"pair.{row.key}") for row in rows)
        return f"Choose a match for each row; {empty} of {len(rows)} have none." if empty else ""

    def describe_incomplete_response(
        self, answer: MatchSpec, raw: SubmittedFields, stem: RichText
    ) -> str:
        del stem
        rows = answer.asked_rows
        matched = sum(bool(first_field_value_or_empty(raw, f"pair.{row.key}")) for row in rows)
        return f"{matched} of {len(rows)} rows matched" if matched < len(rows) else ""

    def build_some_valid_response(self, answer: MatchSpec) -> SubmittedFields:
        first = answer.pairs[0].answer
        return {f"pair.{pair.key}": [first] for pair in answer.pairs}

    def result_column_titles(self, answer: MatchSpec) -> ResultColumnTitles:
        return ResultColumnTitles(
            answer.left_title or "Item", answer.right_title or "Belongs to it"
        )

    def render_card_faces_below_stem(
        self, answer: MatchSpec, render_gap: RenderGap
    ) -> CardFacesHtml:
        del render_gap
        rows = {pair.key: pair for pair in answer.pairs if pair.left.html}
        lefts = [rows[name] for name in answer.shown_left] or list(rows.values())
        cells = {pair.answer: pair.right for pair in answer.pairs if pair.right.html}
        rights = [cells[name] for name in answer.shown_right] or list(cells.values())
        heads = (escape(answer.left_title), escape(answer.right_title))
        asked = _render_titled_cells(heads[0], [p.left for p in lefts]) + _render_titled_cells(
            heads[1], rights
        )
        told = "".join(
            f'<tr><th scope="row">{pair.left.html}</th>'
            f"<td>{pair.right.html}{render_feedback(pair.why)}</td></tr>"
            for pair in lefts
        )
        head = "".join(f'<th scope="col">{words}</th>' for words in heads)
        table = f'<table class="t"><thead><tr>{head}</tr></thead>'
        return CardFacesHtml(asked, f"{table}<tbody>{told}</tbody></table>")

    def sample_responses(self, answer: MatchSpec) -> Iterator[LabeledResponse]:
        rows = [p for p in answer.pairs if p.left.html]
        answers = [p.answer for p in rows]
        turned = answers[1:] + answers[:1]
        decoy = [p.answer for p in answer.pairs if not p.left.html]
        yield LabeledResponse("Every row right", _build_response(rows, answers))
        yield LabeledResponse("The first row only", _build_response(rows[:1], answers))
        yield LabeledResponse("Each row one off", _build_response(rows, turned))
        if decoy:
            response = _build_response(rows, [decoy[0], *answers[1:]])
            yield LabeledResponse("A decoy in the first row", response)

    def compute_guess_score(self, answer: MatchSpec, credit_rule: str) -> float:
        """Return the guess rate: 1/k in each row for k right cells."""
        rows = len(answer.asked_rows)
        cells = len({pair.answer for pair in answer.pairs})
        # With `net`, a wrong row cancels a right one. Guessing earns very little, which is
        # counted as 0.
        if not rows or credit_rule == "net":
            return 0.0
        one = 1 / max(1, cells)
        return one if credit_rule in {"", "each"} else math.pow(one, rows)


def read_table_cells(table: list[Token]) -> list[list[list[Token]]]:
    """Return the cells of a table, row by row, each as its inline tokens."""
    rows: list[list[list[Token]]] = []
    for token in table:
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline" and rows:
            rows[-1].append([token] if token.content.strip() else [])
    return rows


def _report_missing_table(authored: AuthoredItem) -> None:
    """Report a missing table (E52), at rows that Markdown does not recognize as a table."""
    parse_context, first = authored.parse_context, authored.source.line
    hint, message = ("Write a table: | Left | Right | Why |.", "The question has no table.")
    for line in range(first + 1, first + authored.source.text.count("\n") + 1):
        if parse_context.lines[line - 1].lstrip().startswith("|"):
            message = "These lines are read as text, not as a table."
            hint = "Write a line such as |---|---| below the first one, of as many cells."
            parse_context.report("E52", line, 1, message, hint)
            return
    parse_context.report("E52", authored.answer_or_item_line, 1, message, hint)


def _report_rows_without_right_cell(
    answer: MatchSpec, table_line: int, parse_context: ParseContext
) -> None:
    """Report rows with nothing on the right (E52)."""
    for row, pair in enumerate(answer.pairs, table_line + 2):
        if not pair.right.html:
            message = f"The row “{pair.left.plain[:40]}” has nothing on the right."
            if not pair.left.html:
                message = "This row is empty."
            parse_context.report("E52", row, 1, message, "Fill it, or delete the row.")


def _report_repeated_cells(answer: MatchSpec, table_line: int, parse_context: ParseContext) -> None:
    """Report cells that stand twice on a side; on the right, a reason allows it (E53)."""
    seen: set[tuple[str, str]] = set()
    for row, pair in enumerate(answer.pairs, table_line + 2):
        for side, cell in (("left", pair.left), ("right", pair.right)):
            words = reduce_to_words(cell.plain)
            if words and (side, words) in seen and (side == "left" or not pair.why.html):
                hint = "Change one: what is asked twice has two right answers."
                if side == "right":
                    hint = "Say in the third column why both count, or change one."
                message = f"“{cell.plain[:50]}” stands twice on the {side}."
                parse_context.report("E53", row, 1, message, hint)
            seen.add((side, words))


def _cell_text_or_html(cell: RichText) -> str:
    """Return the plain text of a cell, or its HTML if it is an image only."""
    return cell.plain or cell.html


def _grade_row(
    row: MatchRow, given_answer: str, right_cell_by_answer: dict[str, RichText]
) -> PartResult:
    return PartResult(
        key=row.key,
        label=row.left.plain,
        text=row.left,
        chosen=bool(given_answer),
        should_be_chosen=True,
        is_right=given_answer == row.answer,
        given_answer=right_cell_by_answer.get(given_answer, NO_TEXT),
        right_answer=row.right,
        feedback=row.why,
    )


def _build_response(rows: Sequence[MatchRow], answers: Sequence[str]) -> dict[str, list[str]]:
    return {f"pair.{row.key}": [a] for row, a in zip(rows, answers, strict=False)}


def _render_titled_cells(title: str, texts: list[RichText]) -> str:
    head = f"<p><b>{title}</b></p>" if title else ""
    return f"{head}<ul>{render_list_items(text.html for text in texts)}</ul>"
