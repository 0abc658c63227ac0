"""Single: one of several options is right."""

from app.questions.choosing import Choices, Choosing
from app.questions.option_rules import check_cues
from app.questions.written import Written


class Single(Choosing):
    """One right option, which nothing but knowing gives away."""

    name = "single"
    template = "questions/single.html"
    weighed = True
    of_exam = True
    begins = True

    def check(self, answer: Choices, written: Written, *, exam: bool) -> None:
        """All rules of options, and the cues of a single right one."""
        super().check(answer, written, exam=exam)
        if sum(o.ticked for o in written.parts.options) == 1:
            check_cues(written.parts.options, written.sheet)

    def position(self, answer: Choices) -> int | None:
        """The place of the right option as authored."""
        right = [i for i, option in enumerate(answer.options) if option.right]
        return right[0] if right else None
