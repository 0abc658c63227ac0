"""True or false: a sentence that holds or does not."""

import random
from collections.abc import Sequence

from app.content.source_file import SourceFile
from app.questions.choosing import ChoiceAnswer, ChoiceType
from app.questions.option_rules import check_feedback
from app.questions.options import ParsedOption, choices_of
from app.questions.written import AuthoredItem


class TrueFalseType(ChoiceType):
    """Two options whose order everybody knows, so it stays."""

    name = "true-false"
    template = "questions/true-false.html"
    least = 2

    def parse(self, written: AuthoredItem) -> ChoiceAnswer:
        """The two options in authored order."""
        made = choices_of(written.comment.id, written.parts.options, written.scope)
        return ChoiceAnswer("true-false", made, shuffle=False)

    def check_reasons(self, options: Sequence[ParsedOption], sheet: SourceFile) -> None:
        """One reason says it for both."""
        if not any(o.feedback for o in options):
            check_feedback(options, sheet)

    def check_number(self, answer: ChoiceAnswer, stem: str, line: int, sheet: SourceFile) -> None:
        """A sentence asks for no number of options."""

    def right_words(self, answer: ChoiceAnswer) -> list[str]:
        """“True” in a hint gives nothing away."""
        del answer
        return []

    def key_words(self, answer: ChoiceAnswer) -> list[str]:
        """The side that is ticked."""
        return super().right_words(answer)

    def shuffled(self, answer: ChoiceAnswer, mixer: random.Random) -> ChoiceAnswer:
        """As authored."""
        del mixer
        return answer
