"""The answer part of a question, by type."""

import re
from collections.abc import Sized

from markdown_it.token import Token

from app.content.identity import key, normal
from app.content.limits import MOST_OPTIONS
from app.content.manuscript import Manuscript
from app.content.markdown.syntax import close_of, first_line, plain
from app.content.markdown.writer import Scope, write
from app.content.model import NO_TEXT, Text
from app.content.parse.metadata import Comment
from app.questions.kinds.numeric.ranges import BadRange, read_range
from app.questions.model import (
    Blank,
    Choice,
    Choices,
    Cloze,
    Match,
    Numeric,
    NumericOption,
    Order,
    Pair,
    Short,
    ShortOption,
)
from app.questions.options import Option, choices_of, code_of, make_key, text_of

_BLANK = re.compile(r"\[\[(.*?)\]\]", re.DOTALL)


def choices(
    comment: Comment, kind: str, options: list[Option], scope: Scope
) -> Choices:
    """Single, multiple or true/false."""
    shuffle = comment.word("shuffle").lower() not in {"no", "false"}
    made = choices_of(comment.id, options, scope)
    if kind == "true-false":
        return Choices("true-false", made, shuffle=False)
    return Choices("multiple" if kind == "multiple" else "single", made, shuffle)


def numeric(
    comment: Comment, options: list[Option], computed: bool, scope: Scope
) -> Numeric:
    """Accepted and foreseen numbers; what is wrong with one is reported."""
    made: list[NumericOption] = []
    taken: set[str] = set()
    otherwise: float | None = None
    for option in sorted(options, key=lambda o: not o.ticked):
        template = _code(option, scope.sheet)
        if template is None:
            continue
        found = None
        if not computed:
            try:
                found = read_range(template, otherwise if not option.ticked else None)
            except BadRange as error:
                place = scope.sheet.find("`", option.line, option.line)
                scope.sheet.report(error.code, *place, str(error), error.hint)
                continue
            if option.ticked and otherwise is None:
                half = (found.high - found.low) / 2
                otherwise = half / abs(found.centre) if found.centre else 0.0
        why = text_of(option.feedback, scope)
        name = make_key(comment.id, option, taken)
        made.append(NumericOption(name, template, found, option.ticked, why))
    return Numeric(tuple(made))


def _code(option: Option, sheet: Manuscript) -> str | None:
    template = code_of(option)
    if template is None:
        hint = "Write the whole answer as one code span: - [x] `140 GB ± 3%`."
        message = f"“{option.words[:40]}” is not one code span."
        sheet.report("E40", option.line, 1, message, hint)
    return template


def short(comment: Comment, options: list[Option], scope: Scope) -> Short:
    """Words accepted and foreseen."""
    made = []
    taken: set[str] = set()
    for option in options:
        answer = _code(option, scope.sheet)
        if answer is not None:
            why = text_of(option.feedback, scope)
            name = make_key(comment.id, option, taken)
            made.append(ShortOption(name, answer.strip(), option.ticked, why))
    return Short(tuple(made), comment.word("case").lower() in {"yes", "true"})


def order(
    comment: Comment, steps: list[Token], wrong: list[Option], scope: Scope
) -> Order:
    """Steps of an ordered list; unticked options are distractors."""
    made: list[Choice] = []
    taken: set[str] = set()
    at = 1
    while at < len(steps) - 1:
        if _is_full(made, "steps", first_line(steps[at]), scope.sheet):
            break
        end = close_of(steps, at)
        inside = steps[at + 1 : end]
        quote = next(
            (i for i, t in enumerate(inside) if t.type == "blockquote_open"), -1
        )
        body, why = (
            (inside, []) if quote < 0 else (inside[:quote], inside[quote + 1 : -1])
        )
        text = write(body, scope)
        name = _fresh(comment.id, f"step {normal(text.plain)}", taken)
        made.append(Choice(name, text, True, text_of(why, scope)))
        at = end + 1
    return Order(tuple(made), choices_of(comment.id, wrong, scope))


def _fresh(item: str, basis: str, taken: set[str]) -> str:
    name, count = key(item, basis), 0
    while name in taken:
        count += 1
        # Names made of names may come round to the first, so that none is free.
        name = key(item, basis, name if count <= len(taken) else str(count))
    taken.add(name)
    return name


def _is_full(made: Sized, what: str, line: int, sheet: Manuscript) -> bool:
    """Whether a question has as many parts as it can; the first too many is named."""
    if len(made) < MOST_OPTIONS:
        return False
    message = f"The question has more than {MOST_OPTIONS} {what}."
    sheet.report("E88", line, 1, message, "Split it into several questions.")
    return True


def match(comment: Comment, table: list[Token], scope: Scope) -> Match:
    """A table of left, right and an optional reason."""
    rows = rows_of(table)
    titles = [plain(cell) for cell in rows[0]] if rows else []
    pairs: list[Pair] = []
    taken: set[str] = set()
    for row in rows[1:]:
        if _is_full(pairs, "pairs", first_line(table[0]), scope.sheet):
            break
        left, right, why = (
            write(row[i], scope) if i < len(row) else NO_TEXT for i in range(3)
        )
        name = _fresh(comment.id, f"left {normal(left.plain)}", taken)
        answer = key(comment.id, f"right {normal(right.plain)}")
        pairs.append(Pair(name, left, right, why, answer))
    padded = [*titles, "", ""]
    return Match(padded[0], padded[1], tuple(pairs))


def rows_of(table: list[Token]) -> list[list[list[Token]]]:
    """The cells of a table, row by row, each as its inline tokens."""
    rows: list[list[list[Token]]] = []
    for token in table:
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline" and rows:
            rows[-1].append([token] if token.content.strip() else [])
    return rows


def cloze(comment: Comment, blocks: list[Token], scope: Scope) -> Cloze:
    """A text with gaps, cut at its blanks."""
    mark = "\ue0ff"
    blanks: list[Blank] = []
    for token in blocks:
        for child in token.children or []:
            if child.type not in {"text", "text_special"}:
                continue
            line = first_line(token)

            def cut(found: re.Match[str], line: int = line) -> str:
                blanks.append(_blank(comment.id, found[1], (line, blanks), scope.sheet))
                return mark

            child.content = _BLANK.sub(cut, child.content)
            if "[[" in child.content:
                at = scope.sheet.find("[[", line, line + 20)
                message = "A blank is opened and not closed."
                scope.sheet.report("E54", *at, message, "Close it with ]].")
    if len(blanks) > MOST_OPTIONS:
        _is_full(blanks, "blanks", first_line(blocks[0]), scope.sheet)
        return Cloze((NO_TEXT,), ())
    text = write(blocks, scope)
    html, words = text.html.split(mark), text.plain.split(mark)
    words += [""] * (len(html) - len(words))
    pieces = tuple(Text(h, w) for h, w in zip(html, words, strict=False))
    return Cloze(pieces, tuple(blanks))


def _blank(
    item: str, inside: str, where: tuple[int, list[Blank]], sheet: Manuscript
) -> Blank:
    line, before = where
    body, _, hint = inside.partition("?")
    answers = tuple(a.strip() for a in body.split("|") if a.strip())
    if not answers:
        at = sheet.find("[[", line, line + 20)
        sheet.report("E54", *at, "A blank has no answer.", "Write [[answer]].")
    return Blank(key(item, "blank", str(len(before))), answers, hint.strip())
