"""Rules for order, match and cloze questions."""

import re

from markdown_it.token import Token

from app.content.identity import normal
from app.content.manuscript import Manuscript
from app.content.markdown.syntax import close_of, first_line
from app.content.parse.answers import rows_of
from app.questions.model import Match, Order


def check_order(order: Order, line: int, sheet: Manuscript) -> None:
    """E50, E51."""
    if len(order.steps) < 3:
        message = f"The question has {len(order.steps)} steps; three are needed."
        sheet.report("E50", line, 1, message, "Write a numbered list of steps.")
    seen: set[str] = set()
    for step in (*order.steps, *order.distractors):
        words = normal(step.text.plain)
        if words in seen:
            message = f"The step “{step.text.plain[:50]}” stands twice."
            sheet.report("E51", line, 1, message, "Change or delete one of them.")
        seen.add(words)


def check_match(match: Match, table: list[Token], line: int, sheet: Manuscript) -> None:
    """E52, E53."""
    if not table:
        hint = "Write a table: | Left | Right | Why |."
        sheet.report("E52", line, 1, "The question has no table.", hint)
        return
    at = first_line(table[0])
    width = len(rows_of(table)[0])
    if width not in {2, 3}:
        message = f"The table has {width} columns; it needs two or three."
        sheet.report("E52", at, 1, message, "Write left, right and, if you like, why.")
        return
    if sum(bool(p.left.html) for p in match.pairs) < 2:
        sheet.report("E52", at, 1, "The table has fewer than two pairs.", "Add a row.")
    seen: set[str] = set()
    for index, pair in enumerate(match.pairs):
        words = normal(pair.right.plain)
        if words and words in seen and not pair.why.html:
            message = f"“{pair.right.plain[:50]}” stands twice on the right."
            hint = "Say in the third column why both count, or change one."
            sheet.report("E53", at + 2 + index, 1, message, hint)
        seen.add(words)


def check_cloze(body: list[Token], sheet: Manuscript) -> None:
    """E55: in a table the bars of a blank would be read as columns."""
    for at, token in enumerate(body):
        if token.type != "table_open":
            continue
        inside = body[at : close_of(body, at)]
        if any(re.search(r"\[\[", t.content) for t in inside if t.type == "inline"):
            message = "A blank stands inside a table, where its bars part columns."
            sheet.report(
                "E55", first_line(token), 1, message, "Put it into a sentence."
            )
