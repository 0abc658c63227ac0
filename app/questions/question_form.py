"""A question put to a learner: token, seed, draft answer."""

import dataclasses
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from app.estimator import registry
from app.markup.expressions import PLACEHOLDER, ExpressionError
from app.markup.model import RichText
from app.questions import types
from app.questions.model import Question, Variant
from app.questions.question_type import QuestionType
from app.questions.result import LEVELS, ConfidenceLevel
from app.questions.variants import draw_variant, next_seed
from app.widgets.calculator_form import FormField, fields_of

_LONGEST = 90  # characters of a question or card in a list


@dataclasses.dataclass(frozen=True, slots=True)
class OpenQuestion:
    """What `quiz/_question.html` shows: one question as a form.

    `token` makes a repeated answer harmless; `context` is page, quiz or practice;
    `back` the address of the page it stands on, `run` the practice run or 0;
    `typed` what was sent so far, by field; `hints` how many are shown; `since` the
    moment of the first showing in milliseconds, 0 where it is not known.
    `refused` and `hint` say why an answer could not be read, `near` that only the
    unit of a number is wrong. `at` is the address that answers go to where the
    question is not asked by the quiz, as in an exam.
    """

    variant: Variant
    token: str
    context: str = "quiz"
    back: str = ""
    run: int = 0
    place: int = 0
    hints: int = 0
    since: int = 0
    certainty: int = 0
    typed: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    refused: str = ""
    hint: str = ""
    near: str = ""
    at: str = ""

    @property
    def question(self) -> Question:
        """The authored item."""
        return self.variant.question

    @property
    def kind(self) -> QuestionType[Any]:
        """What kind of question it is."""
        return types.type_of(self.variant)

    @property
    def shown(self) -> Any:
        """What the template of its kind gets beside the answer."""
        return self.kind.shown(self.variant.answer, self.typed)

    @property
    def levels(self) -> tuple[ConfidenceLevel, ...]:
        """How sure the learner may say to be."""
        return LEVELS

    @property
    def target(self) -> str:
        """What an answer replaces: the question, in a run also what stands above."""
        return "#desk" if self.run else f"#q-{self.question.id}"

    @property
    def page(self) -> str:
        """The address of the page that shows this question alone."""
        if self.at:
            return self.at
        if self.run:
            return f"/quiz/runs/{self.run}/{self.place}"
        return f"/quiz/{self.question.topic}/{self.question.id}"

    @property
    def action(self) -> str:
        """The address of the question, where its answers are sent."""
        return self.at or f"/quiz/{self.question.topic}/{self.question.id}"

    def given(self, name: str) -> str:
        """What stands in a field."""
        values = self.typed.get(name) or ("",)
        return values[0]

    def inputs(
        self, estimate: str, values: Mapping[str, str], sent: Mapping[str, str]
    ) -> tuple[FormField, ...]:
        """Inputs of an estimate as fields, `sent` from each name to that in the form.

        `values` are what stands in all of its inputs so far.
        """
        entry = registry.find_estimate(estimate)
        if entry is None:
            return ()
        fields = fields_of(entry, values, None, (), id=f"q-{self.question.id}")
        known = {f.name: f for f in fields}
        return tuple(
            dataclasses.replace(known[name], name=field)
            for name, field in sent.items()
            if name in known
        )


def build_open_question(
    question: Question,
    *,
    key: str,
    before: Sequence[int] = (),
    context: str = "quiz",
    back: str = "",
) -> OpenQuestion:
    """Put a question to the learner of `key`.

    `before` are the seeds of earlier attempts, the newest first: a computed question
    shows other numbers than the last time, where it has others.
    """
    seed = seed_for(question, key, before)
    return OpenQuestion(draw_variant(question, seed), new_token(), context, back)


def seed_for(question: Question, key: str, before: Sequence[int]) -> int:
    """The seed of the next attempt; the same until the question was answered."""
    seed = next_seed(question, key, len(before))
    if before and question.computed:
        last = draw_variant(question, before[0]).values
        if draw_variant(question, seed).values == last:  # it was asked in an exam meanwhile
            return next_seed(question, key, len(before) + 1)
    return seed


def new_token() -> str:
    """A word that no other form has."""
    return secrets.token_urlsafe(12)


def title_of(question: Question) -> str:
    """The beginning of a question for lists: with numbers as one attempt has them."""
    if question.computed is None:
        return excerpt(question.stem)
    try:
        return excerpt(draw_variant(question, 0).stem)
    except ExpressionError:
        return excerpt(question.stem)


def excerpt(text: RichText) -> str:
    """The beginning of a text, cut at a word, for lists and titles.

    Numbers that are drawn for each attempt are left open.
    """
    words = " ".join(PLACEHOLDER.sub("…", text.plain).split())
    if len(words) <= _LONGEST:
        return words
    return words[: words.rfind(" ", 0, _LONGEST)] + "…"
