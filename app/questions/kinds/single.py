"""Single: one of several options is right."""

import re
from collections.abc import Callable, Sequence

from app.content.source_file import SourceFile
from app.questions.choosing import ChoiceAnswer, ChoiceType
from app.questions.options import ParsedOption
from app.questions.written import AuthoredItem


class SingleChoiceType(ChoiceType):
    """One right option, which nothing but knowing gives away."""

    name = "single"
    template = "questions/single.html"
    weighed = True
    of_exam = True
    begins = True

    def check(self, answer: ChoiceAnswer, written: AuthoredItem, *, exam: bool) -> None:
        """All rules of options, and the cues of a single right one."""
        super().check(answer, written, exam=exam)
        if sum(o.ticked for o in written.parts.options) == 1:
            _check_cues(written.parts.options, written.sheet)

    def position(self, answer: ChoiceAnswer) -> int | None:
        """The place of the right option as authored."""
        right = [i for i, option in enumerate(answer.options) if option.right]
        return right[0] if right else None


def _check_cues(options: Sequence[ParsedOption], sheet: SourceFile) -> None:
    """W26, W27: what gives the right option away without knowing."""
    right = next(o for o in options if o.ticked)
    wrong = [o for o in options if not o.ticked]
    longest = max((len(o.words) for o in wrong), default=0)
    if len(right.words) > max(1.4 * longest, longest + 15):
        message = f"The right option has {len(right.words)} letters, the longest other "
        message += f"{longest}."
        sheet.report("W26", right.line, 1, message, "Make the options alike in length.")
    for name, has in _FORMS.items():
        if wrong and has(right) and not any(has(o) for o in wrong):
            message = f"Only the right option {name}."
            hint = "Give the wrong options the same form."
            sheet.report("W27", right.line, 1, message, hint)


def _has(kind: str, option: ParsedOption) -> bool:
    return any(c.type == kind for c in option.inline.children or [])


_FORMS: dict[str, Callable[[ParsedOption], bool]] = {
    "is in code style": lambda o: _has("code_inline", o),
    "has bold words": lambda o: _has("strong_open", o),
    "has a number": lambda o: bool(re.search(r"\d", o.words)),
}
