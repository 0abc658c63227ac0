"""True or false: a sentence that holds or does not."""

import random
from collections.abc import Sequence

from app.content.source_file import Manuscript
from app.questions.choosing import Choices, Choosing
from app.questions.option_rules import check_feedback
from app.questions.options import Option, choices_of
from app.questions.written import Written


class TrueFalse(Choosing):
    """Two options whose order everybody knows, so it stays."""

    name = "true-false"
    template = "questions/true-false.html"
    least = 2

    def parse(self, written: Written) -> Choices:
        """The two options in authored order."""
        made = choices_of(written.comment.id, written.parts.options, written.scope)
        return Choices("true-false", made, shuffle=False)

    def check_reasons(self, options: Sequence[Option], sheet: Manuscript) -> None:
        """One reason says it for both."""
        if not any(o.feedback for o in options):
            check_feedback(options, sheet)

    def check_number(self, answer: Choices, stem: str, line: int, sheet: Manuscript) -> None:
        """A sentence asks for no number of options."""

    def right_words(self, answer: Choices) -> list[str]:
        """“True” in a hint gives nothing away."""
        del answer
        return []

    def key_words(self, answer: Choices) -> list[str]:
        """The side that is ticked."""
        return super().right_words(answer)

    def shuffled(self, answer: Choices, mixer: random.Random) -> Choices:
        """As authored."""
        del mixer
        return answer
