"""The rules of items: those of a kind, of numbers, of words, and of a whole file."""

import re
from collections.abc import Iterable

from markdown_it.token import Token

from app.content.identity import normalize_text
from app.content.markdown.syntax import first_line
from app.content.model import Flashcard
from app.content.numbers.templates import PLACEHOLDER
from app.content.rules.computed import check_computed
from app.content.source_file import SourceFile
from app.questions import kinds
from app.questions.model import Question
from app.questions.written import AuthoredItem, ItemDraft

_MOST_WORDS = 120
_FEWEST, _MOST_ALIKE = 8, 0.6  # single choices of a file, and of one position
_SEARCHING = 0.001  # microseconds for each character that is looked through
_ASKING = re.compile(r"\b(?:which|what|who|when|where)\b", re.IGNORECASE)
_NEGATIVE = re.compile(r"\b(?:not|except|never)\b", re.IGNORECASE)


def check_item(
    question: Question | Flashcard, written: AuthoredItem, sheet: SourceFile, *, exam: bool
) -> None:
    """Report what is wrong with one item; `exam`: it can stand in a mock exam."""
    _check_notes(written.draft, sheet)
    if isinstance(question, Flashcard):
        _check_braces(written.draft, sheet, card=True)
        return
    kinds.type_of(question).check(question.answer, written, exam=exam)
    broken = written.draft.broken or any(
        p.severity == "error" and p.item == question.id for p in sheet.problems[sheet.mark :]
    )
    if question.computed and not broken:
        check_computed(question, written.comment, sheet)
    elif not question.computed:
        _check_braces(written.draft, sheet)
    _check_wording(question, written.draft.heading, sheet)


def _check_wording(question: Question, heading: Token, sheet: SourceFile) -> None:
    """W29, W65, W67 for one question, and what its kind says of its words."""
    line = first_line(heading)
    _check_negation(heading, line, sheet)
    kinds.type_of(question).check_words(question.answer, question.stem, line, sheet)
    count = len(question.stem.plain.split())
    if count > _MOST_WORDS:
        message = f"The stem has {count} words; more than {_MOST_WORDS} are too many."
        sheet.report("W65", line, 1, message, "Shorten it.")
    _check_hints(question, line, sheet)


def _check_notes(draft: ItemDraft, sheet: SourceFile) -> None:
    """W96: what explains a footnote stands on a page, not in an item."""
    for token in draft.body:
        if token.type == "note_open":
            message = f"“[^{token.content}]:” stands in an item, where nothing shows it."
            hint = f"Move it to the page, or write source: {token.content} in the item."
            sheet.report("W96", first_line(token), 1, message, hint)


def _check_braces(draft: ItemDraft, sheet: SourceFile, *, card: bool = False) -> None:
    """E46: a placeholder in an item that has no numbers would be shown as it stands."""
    for token in (draft.heading, *draft.body):
        first = first_line(token) if token.type == "inline" else 0
        for child in (token.children or ()) if first else ():
            found = PLACEHOLDER.search(child.content) if child.type == "text" else None
            if found is None or f"\\{found[0]}" in token.content:
                continue
            place = sheet.find(found[0], first, first + token.content.count("\n"))
            what = "card" if card else "item"
            code = f"as code, `{found[0]}`, or \\{found[0]}."
            message = f"“{found[0]}” is shown as it stands: the {what} has no params."
            hint = f"Define {found[1]} in params, or write it {code}"
            hint = f"Write it {code}" if card else hint
            sheet.report("E46", *place, message, hint)
            return


def _check_negation(heading: Token, line: int, sheet: SourceFile) -> None:
    """An unemphasized "not" in a question is easily read over."""
    strong = 0
    plain = ""
    for child in heading.children or []:
        if child.type in {"strong_open", "em_open"}:
            strong += 1
        elif child.type in {"strong_close", "em_close"}:
            strong -= 1
        elif not strong and child.type == "text":
            plain += child.content
    asking = _ASKING.search(plain)
    found = _NEGATIVE.findall(plain, asking.end()) if asking else []
    if found and found[-1].islower():
        message = f"The question turns on “{found[-1]}”, which has no emphasis."
        hint = f"Ask for what is so, or write **{found[-1]}**."
        sheet.report("W29", line, 1, message, hint)


def _check_hints(question: Question, line: int, sheet: SourceFile) -> None:
    hints = [f" {normalize_text(hint.plain)} " for hint in question.hints]
    answers = _right_answers(question)
    sheet.spend(len(answers) * sum(map(len, hints)) * _SEARCHING)
    for answer in answers:
        for number, hint in enumerate(hints, 1):
            if f" {answer} " in hint:
                message = f"Hint {number} contains the answer “{answer}”."
                sheet.report("W67", line, 1, message, "Point the way; do not arrive.")
                return


def _right_answers(question: Question) -> list[str]:
    texts = kinds.type_of(question).right_words(question.answer)
    found = (normalize_text(t) for t in texts if not PLACEHOLDER.search(t))
    return [t for t in found if len(t) >= 3]


def check_balance(items: Iterable[Question | Flashcard], sheet: SourceFile) -> None:
    """W30: in a file of eight or more, no position has most of the right options."""
    found = [
        (place, item.place.line)
        for item in items
        if isinstance(item, Question)
        and (place := kinds.type_of(item).position(item.answer)) is not None
    ]
    if len(found) < _FEWEST:
        return
    places = [place for place, _ in found]
    most = max(set(places), key=places.count)
    share = places.count(most) / len(places)
    if share > _MOST_ALIKE:
        sheet.item = ""
        message = f"The right option is number {most + 1} in {share:.0%} of the questions."
        sheet.report("W30", found[0][1], 1, message, "Vary its position.")
