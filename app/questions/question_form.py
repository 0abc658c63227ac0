"""A question as a form: token, seed, draft answer."""

import dataclasses
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from app.estimator import registry
from app.markup.expressions import PLACEHOLDER_PATTERN, ExpressionError
from app.markup.model import RichText
from app.questions import types
from app.questions.model import Question, Variant, compute_seed_for_attempt, draw_variant
from app.questions.question_type import CONFIDENCE_LEVELS, ConfidenceLevel, QuestionType
from app.widgets.calculator_form import FormField, build_form_fields

_MAX_TITLE_LENGTH = 90  # Characters of a question or card that lists show.


@dataclasses.dataclass(frozen=True, slots=True)
class OpenQuestion:
    """What `quiz/_question.html` shows: one question as a form.

    `submission_token` makes a repeated submission harmless; `context` is page, quiz or practice;
    `back_url` is the page that contains it; `run_id` is 0 outside a practice run;
    `typed_fields` has the values submitted so far; `first_shown_ms` is 0 if unknown.
    `parse_error` and `parse_error_hint` say why a response could not be parsed, `near_miss_message` that
    only the unit of a number is wrong; it is then asked again, and the next
    response counts. `submit_url` is set if another page than the quiz shows it, such as an
    exam.
    """

    variant: Variant
    submission_token: str
    context: str = "quiz"
    back_url: str = ""
    run_id: int = 0
    position_in_run: int = 0
    shown_hint_count: int = 0
    first_shown_ms: int = 0
    certainty: int = 0
    typed_fields: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    parse_error: str = ""
    parse_error_hint: str = ""
    near_miss_message: str = ""
    is_asked_again: bool = False
    submit_url: str = ""

    @property
    def question(self) -> Question:
        return self.variant.question

    @property
    def question_type(self) -> QuestionType[Any]:
        return types.question_type_of(self.variant)

    @property
    def template_data(self) -> Any:
        """Return what its type's template needs in addition to the answer."""
        return self.question_type.build_template_data(self.variant.answer, self.typed_fields)

    @property
    def confidence_levels(self) -> tuple[ConfidenceLevel, ...]:
        return CONFIDENCE_LEVELS

    @property
    def swap_selector(self) -> str:
        """Return the element that a response replaces: the question, in a run also its header."""
        return "#desk" if self.run_id else f"#q-{self.question.id}"

    @property
    def page_url(self) -> str:
        if self.submit_url:
            return self.submit_url
        if self.run_id:
            return f"/quiz/runs/{self.run_id}/{self.position_in_run}"
        return f"/quiz/{self.question.topic}/{self.question.id}"

    @property
    def form_action_url(self) -> str:
        return self.submit_url or f"/quiz/{self.question.topic}/{self.question.id}"

    def typed_value_or_empty(self, name: str) -> str:
        values = self.typed_fields.get(name) or ("",)
        return values[0]

    def build_estimate_form_fields(
        self,
        estimate: str,
        current_values: Mapping[str, str],
        form_field_by_input: Mapping[str, str],
    ) -> tuple[FormField, ...]:
        """Return inputs of an estimate as form fields; `form_field_by_input` maps input to form names.

        `current_values` are the current values of all inputs.
        """
        entry = registry.find_estimate(estimate)
        if entry is None:
            return ()
        fields = build_form_fields(
            entry, current_values, None, (), element_id=f"q-{self.question.id}"
        )
        fields_by_name = {f.name: f for f in fields}
        return tuple(
            dataclasses.replace(fields_by_name[name], name=field)
            for name, field in form_field_by_input.items()
            if name in fields_by_name
        )


def build_open_question(
    question: Question,
    *,
    learner_key: str,
    earlier_seeds: Sequence[int] = (),
    context: str = "quiz",
    back_url: str = "",
) -> OpenQuestion:
    """Create the form of a question for the learner of `learner_key`.

    `earlier_seeds` are the seeds of earlier attempts, newest first: a computed question shows
    other numbers than the last time, if it has others.
    """
    seed = compute_seed_of_next_attempt(question, learner_key, earlier_seeds)
    return OpenQuestion(draw_variant(question, seed), make_submission_token(), context, back_url)


def compute_seed_of_next_attempt(
    question: Question, learner_key: str, earlier_seeds: Sequence[int]
) -> int:
    """Return the seed of the next attempt; it stays the same until the question is answered."""
    seed = compute_seed_for_attempt(question, learner_key, len(earlier_seeds))
    if earlier_seeds and question.computed:
        last_values = draw_variant(question, earlier_seeds[0]).parameter_values
        if (
            draw_variant(question, seed).parameter_values == last_values
        ):  # In the meantime an exam asked the question.
            return compute_seed_for_attempt(question, learner_key, len(earlier_seeds) + 1)
    return seed


def make_submission_token() -> str:
    return secrets.token_urlsafe(12)


def make_question_title(question: Question, seed: int = 0) -> str:
    """Return the start of a question for lists, with its numbers drawn from `seed`."""
    return excerpt_for_title(_stem_with_numbers(question, seed))


def excerpt_first_line(question: Question) -> str:
    """Return the first line of a question, with numbers as one attempt draws them."""
    heading = _stem_with_numbers(question, 0).plain.partition("\n")[0]
    return excerpt_for_title(RichText(heading, heading))


def _stem_with_numbers(question: Question, seed: int) -> RichText:
    try:
        return draw_variant(question, seed).stem if question.computed else question.stem
    except ExpressionError:
        return question.stem


def excerpt_for_title(text: RichText) -> str:
    """Return the start of a text, cut at a word, for lists and titles.

    Numbers that are drawn for each attempt are left blank. Of a question with a table or an output
    below it, only the question counts.
    """
    first_line = text.plain.partition("\n")[0]
    whole = first_line if first_line.endswith("?") else text.plain
    title = " ".join(PLACEHOLDER_PATTERN.sub("…", whole).split())
    if len(title) <= _MAX_TITLE_LENGTH:
        return title
    return title[: title.rfind(" ", 0, _MAX_TITLE_LENGTH)].rstrip(".,:;") + "…"
