"""Multiple: several options may be right, and each is ticked by itself."""

import functools
import itertools
import math
from collections.abc import Collection, Iterator, Sequence

from app.content.source_file import SourceFile
from app.questions.choosing import ChoiceAnswer, ChoiceType
from app.questions.kind import State
from app.questions.options import ParsedOption
from app.questions.verdict import fraction
from app.questions.written import AuthoredItem


class MultipleChoiceType(ChoiceType):
    """Boxes to tick, scored by the item's own rule."""

    name = "multiple"
    template = "questions/multiple.html"
    several = True
    in_parts = True
    credits = ("off", "net", "coverage", "each")
    of_exam = True
    begins = True
    note = "More than one may be right."
    nothing = "No answer is ticked. Tick all that are right."

    def check_ticks(self, ticked: Sequence[ParsedOption], sheet: SourceFile) -> None:
        """E21: learners are told that several are right."""
        if len(ticked) == 1:
            message = "1 option is marked right in a multiple choice."
            hint = "Mark another one, or leave the type out."
            sheet.report("E21", ticked[0].line, 1, message, hint)

    def check(self, answer: ChoiceAnswer, written: AuthoredItem, *, exam: bool) -> None:
        """E33: not everything is right."""
        super().check(answer, written, exam=exam)
        sheet = written.sheet
        unread = any(p.code == "E24" for p in sheet.problems[sheet.mark :])
        if len(answer.options) > 1 and all(o.right for o in answer.options) and not unread:
            line = written.parts.options[0].line
            hint = "Add an option that is wrong and likely, or take a tick away."
            message = "Every option is marked right."
            sheet.report("E33", line, 1, message, hint)

    def score(self, answer: ChoiceAnswer, chosen: set[str], partial: str) -> float:
        """The score by the rule of the item."""
        right = {o.key for o in answer.options if o.right}
        return credit(right, chosen, len(answer.options), partial)

    def states(self, answer: ChoiceAnswer) -> Iterator[State]:
        """All right ones, each alone, and everything."""
        right = [o.key for o in answer.options if o.right]
        yield "All that are right", {"answer": right}
        for option in answer.options:
            yield f"Only “{option.text.plain}”", {"answer": [option.key]}
        yield "Everything", {"answer": [o.key for o in answer.options]}

    def guess_rate(self, answer: ChoiceAnswer, partial: str) -> float:
        """Boxes are ticked by a coin, and marked by the question's own rule."""
        right = sum(option.right for option in answer.options)
        return _boxes(right, len(answer.options) - right, partial)


def credit(key: Collection[str], chosen: Collection[str], all_: int, rule: str) -> float:
    """The score 0..1 for choosing `chosen` where `key` is right, of `all_` options.

    - `off` (and nothing): all or nothing
    - `net`: (hits − misses) ÷ number of right options, never below 0
    - `coverage`: the share of the right ones found × the share of the chosen ones
      that are right
    - `each`: the share of boxes, ticked or not, that are as they should be; nothing
      where no right one is ticked
    """
    key, chosen = set(key), set(chosen)
    hits, misses = len(key & chosen), len(chosen - key)
    if rule == "net":
        return fraction(hits - misses, len(key))
    if rule == "coverage":
        return fraction(hits * hits, len(key) * len(chosen))
    if rule == "each":
        return fraction(all_ - len(key ^ chosen), all_) if hits or not key else 0.0
    return float(key == chosen)


@functools.cache
def _boxes(right: int, wrong: int, rule: str) -> float:
    """The mean credit of ticking boxes by a coin, at least one of them."""
    total = 0.0
    for hits, misses in itertools.product(range(right + 1), range(wrong + 1)):
        ways = math.comb(right, hits) * math.comb(wrong, misses)
        if hits or misses:
            total += ways * _credit(hits, misses, (right, wrong), rule)
    return total / (math.pow(2, right + wrong) - 1)


def _credit(hits: int, misses: int, boxes: tuple[int, int], rule: str) -> float:
    right, wrong = boxes
    if rule == "each":
        return 0.0 if right and not hits else (hits + wrong - misses) / (right + wrong)
    if rule == "net":
        return max(0.0, (hits - misses) / right) if right else 0.0
    if rule == "coverage":
        return hits * hits / (right * (hits + misses)) if right else 0.0
    return float(hits == right and not misses)
