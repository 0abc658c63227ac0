"""All rules of one item: those of its kind, of its numbers and of its words."""

from app.content.model import Card
from app.content.rules.computed import check_computed
from app.content.rules.wording import check_braces, check_notes, check_wording
from app.content.source_file import Manuscript
from app.questions import kinds
from app.questions.model import Question
from app.questions.written import Written


def check_item(
    question: Question | Card, written: Written, sheet: Manuscript, *, exam: bool
) -> None:
    """Report what is wrong with one item; `exam`: it can stand in a mock exam."""
    check_notes(written.draft, sheet)
    if isinstance(question, Card):
        check_braces(written.draft, sheet, card=True)
        return
    kinds.of(question).check(question.answer, written, exam=exam)
    broken = written.draft.broken or any(
        p.severity == "error" and p.item == question.id
        for p in sheet.problems[sheet.mark :]
    )
    if question.computed and not broken:
        check_computed(question, written.comment, sheet)
    elif not question.computed:
        check_braces(written.draft, sheet)
    check_wording(question, written.draft.heading, sheet)
