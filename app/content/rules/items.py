"""All rules of one item, by its type."""

from app.content.manuscript import Manuscript
from app.content.model import Card
from app.content.parse.items import Built
from app.content.rules.computed import check_computed, check_numeric
from app.content.rules.options import (
    check_any_right,
    check_choices,
    check_doubles,
    check_feedback,
)
from app.content.rules.shapes import check_cloze, check_match, check_order
from app.content.rules.wording import check_wording
from app.questions.model import Choices, Match, Order, Question


def check_item(built: Built, exam: bool, sheet: Manuscript) -> None:
    """Report what is wrong with one item; `exam`: it can stand in a mock exam."""
    question = built.item
    if isinstance(question, Card):
        return
    draft, parts = built.draft, built.parts
    line = parts.list_line or draft.line
    answer = question.answer
    if isinstance(answer, Choices):
        said = draft.comment.word("type")
        check_choices(parts.options, answer, (draft.line, exam, said), sheet)
    elif question.type in {"numeric", "short"}:
        check_any_right(parts.options, line, sheet)
        check_doubles(parts.options, sheet)
        check_feedback(parts.options, sheet)
    _check_shape(question, built, line, sheet)
    if question.computed:
        if not draft.broken and not any(
            p.severity == "error" and p.item == question.id
            for p in sheet.problems[sheet.mark :]
        ):
            check_computed(question, draft.comment, sheet)
    else:
        check_numeric(question, line, sheet)
    check_wording(question, draft.heading, sheet)


def _check_shape(
    question: Question, built: Built, line: int, sheet: Manuscript
) -> None:
    answer = question.answer
    if isinstance(answer, Order):
        check_order(answer, line, sheet)
    elif isinstance(answer, Match):
        check_match(answer, built.parts.table, line, sheet)
    elif question.type == "cloze":
        check_cloze(built.draft.body, sheet)
