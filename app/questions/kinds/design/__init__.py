"""Design: a plan that the learner chooses and the estimator judges."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from app.content.numbers import estimates
from app.content.numbers.estimates import FigureError
from app.estimator.inputs import format_input, input_specs
from app.questions.kind import QuestionType, State, Typed
from app.questions.kinds.design.grade import grade_design
from app.questions.kinds.design.model import DesignAnswer, OpenDesign
from app.questions.kinds.design.parse import check_design, design
from app.questions.kinds.design.rules import check_plans
from app.questions.kinds.design.solver import problem_of, start_of
from app.questions.kinds.design.wording import described
from app.questions.verdict import GradeResult, Raw, UnreadableResponse
from app.questions.written import AuthoredItem


class DesignType(QuestionType[DesignAnswer]):
    """Inputs of an estimate, of which any choice counts that meets the conditions.

    No exam asks it, for a plan takes longer than a question may; no card does, for
    many plans hold, so no back could say whether one's own does.
    """

    name = "design"
    models = (DesignAnswer,)
    template = "questions/design.html"
    boxed = False
    in_parts = True
    keys = ("estimate", "given", "choose", "accept")
    fields = ("choose.",)
    in_exams = False
    as_card = False
    verb = "had"
    estimates = True

    def parse(self, written: AuthoredItem) -> DesignAnswer:
        """What is fixed, what is chosen, what has to hold."""
        return design(written.comment)

    def check(self, answer: DesignAnswer, written: AuthoredItem, *, exam: bool) -> None:
        """E80, E81, E11, E13: the estimate knows every name; then its plans."""
        del exam
        before = len(written.sheet.problems)
        check_design(answer, written.comment, written.sheet)
        if len(written.sheet.problems) == before:
            check_plans(answer, written.comment, written.sheet)

    def key_words(self, answer: DesignAnswer) -> list[str]:
        """What decides which plans hold: the estimate, what is fixed, every limit."""
        return [answer.estimate, self.read_before(answer)]

    def shown(self, answer: DesignAnswer, typed: Typed) -> OpenDesign:
        """The plan as it stands, and what it has to meet."""
        fields = {name: f"choose.{name}" for name in answer.choose}
        chosen = {n: (typed.get(sent) or ("",))[0] for n, sent in fields.items()}
        begun = {n: words for n, words in chosen.items() if words}
        values = {**answer.given, **(begun or start_of(problem_of(answer)))}
        given = {name: name for name in answer.given}
        return OpenDesign(answer.estimate, values, fields, given, described(answer))

    def grade(
        self, answer: DesignAnswer, raw: Raw, partial: str
    ) -> GradeResult | UnreadableResponse:
        """Judge a plan by the estimator."""
        return grade_design(answer, raw, partial)

    def columns(self, answer: DesignAnswer) -> tuple[str, str]:
        """Conditions and their limits."""
        del answer
        return "Condition", "Limit"

    def calculator(self, answer: DesignAnswer, parsed: Mapping[str, Any]) -> str:
        """The calculator with the plan that was chosen."""
        if not parsed.get("plan"):
            return ""
        return estimates.address(answer.estimate, {**answer.given, **parsed["plan"]})

    def read_before(self, answer: DesignAnswer) -> str:
        """What is given, what is chosen, and what has to hold."""
        given = (f"{name} {words}" for name, words in answer.given.items())
        return " ".join([*given, *answer.choose, *answer.accept])

    def states(self, answer: DesignAnswer) -> Iterator[State]:
        """The plan as nobody has touched it."""
        try:
            entry = estimates.require_estimate(answer.estimate)
        except FigureError:
            return
        defaults = {f.name: f.default for f in dataclasses.fields(entry.inputs)}
        inputs = input_specs(entry.inputs)
        plan = {
            f"choose.{name}": [format_input(inputs[name], defaults[name])]
            for name in answer.choose
            if defaults.get(name) is not None
        }
        yield "The plan as it stands", plan
