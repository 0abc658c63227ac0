"""A question, and its variants: the numbers and the order that a seed draws."""

import dataclasses
import hashlib
import logging
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from app.markup import expressions
from app.markup.expressions import (
    ExpressionError,
    Value,
    compile_expression,
    evaluate_call_inputs_as_form_text,
    evaluate_expression,
)
from app.markup.model import NO_TEXT, Level, QuestionParameters, RichText, SourceLocation, Status
from app.markup.quantities import Quantity
from app.questions import types
from app.questions.types import Answer


@dataclasses.dataclass(frozen=True, slots=True)
class Question:
    """An authored question; `revision` is the hash of its content.

    `stem`, option texts and `explanation` contain {name} templates while `computed`
    is set; `draw_variant` fills them. `section` is the anchor of its page section
    (empty in quiz.md). `level` is deeper for content beyond the exam; `use` is exam for
    questions that practice leaves out until the learner has seen them in a mock exam.
    `partial` is coverage only in stored revisions from before it was removed.
    """

    id: str
    topic: str
    type: str
    stem: RichText
    answer: Answer
    objectives: tuple[str, ...]
    place: SourceLocation
    revision: str
    difficulty: int = 3
    sources: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    hints: tuple[RichText, ...] = ()
    explanation: RichText = NO_TEXT
    mistake: RichText = NO_TEXT
    partial: Literal["", "off", "net", "coverage", "each", "lcs"] = ""
    computed: QuestionParameters | None = None
    section: str = ""
    level: Level = ""
    use: Literal["", "exam"] = ""
    status: Status = "live"

    @property
    def may_be_asked_in_exams(self) -> bool:
        """Return whether mock exams may draw it.

        Design exercises, deeper questions, and choices between two options are excluded.
        """
        kind = types.question_type_of(self)
        return (
            kind.is_allowed_in_exams
            and self.level != "deeper"
            and kind.has_enough_exam_options(self.answer)
        )

    @property
    def is_reserved_for_exams(self) -> bool:
        """Return whether practice leaves it out until it was seen in a mock exam."""
        return self.use == "exam" and self.may_be_asked_in_exams

    def find_domain(self, domain_by_objective: Mapping[str, str]) -> str:
        """Return the domain that it counts in: that of its first objective, or "".

        A question that serves two domains would otherwise be counted twice.
        `domain_by_objective` maps an objective to its domain.
        """
        return next(
            (domain_by_objective[o] for o in self.objectives if o in domain_by_objective), ""
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Variant:
    """A question as one attempt shows and grades it, with numbers and order drawn.

    `question` is the authored item; `answer` has ranges and texts filled in and
    options in the order displayed. The same (question, seed) gives the same variant.
    `parameter_values` are the drawn parameters, e.g. {"batch": 8}; `calculator_url` is the URL
    of the calculator with these numbers ("/calculators/kv-cache?..."), or empty.
    """

    question: Question
    seed: int
    stem: RichText
    answer: Answer
    hints: tuple[RichText, ...]
    explanation: RichText
    mistake: RichText
    parameter_values: Mapping[str, str | int | float]
    calculator_url: str = ""


MAX_VARIANTS = 200
_SEED_COUNT = 2**31
_log = logging.getLogger("headroom")


def draw_variant(question: Question, seed: int) -> Variant:
    """Draw the variant of `question` for `seed`; pure and repeatable.

    The same seed gives the same numbers and the same order of options. Seeds that
    differ by less than the number of combinations give different numbers. A combination
    without an answer is replaced by the next one that has an answer. Raises
    ExpressionError if none has one, and if drawing fails in any other way.
    """
    try:
        return _draw_values_and_order(question, seed)
    except ExpressionError:
        raise
    except Exception as error:  # An authoring error must never become a server error.
        _log.exception("the question “%s” could not be drawn", question.id)
        message = "The numbers of this question cannot be computed."
        raise ExpressionError("E47", message) from error


def _draw_values_and_order(question: Question, seed: int) -> Variant:
    drawn, calculator_url = DrawnNumbers({}, {}, question.answer), ""
    texts = [question.stem, question.explanation, question.mistake, *question.hints]
    if question.computed:
        drawn = _find_valid_combination(question.computed, question.answer, seed)
        values = drawn.parameters_and_expressions
        texts = [expressions.fill_placeholders_of_rich_text(text, values) for text in texts]
        calculator_url = _calculator_url(question.computed, values)
    stem, explanation, mistake, *hints = texts
    mixer = random.Random(f"{question.id}:{seed}")  # noqa: S311 - shuffling, not cryptography
    return Variant(
        question,
        seed,
        stem,
        types.question_type_of(question).shuffle_options(drawn.answer, mixer),
        tuple(hints),
        explanation,
        mistake,
        drawn.drawn_parameters,
        calculator_url,
    )


class DrawnNumbers(NamedTuple):
    """The parameters of a variant, these with the computed values, and the answer filled in."""

    drawn_parameters: dict[str, str | float]
    parameters_and_expressions: dict[str, Value]
    answer: Answer


def _find_valid_combination(
    computed: QuestionParameters, answer: Answer, seed: int
) -> DrawnNumbers:
    kind = types.type_of_answer(answer)
    first_error: ExpressionError | None = None
    for offset in range(min(count_combinations(computed), MAX_VARIANTS)):
        parameters = build_nth_combination(computed, seed + offset)
        try:
            values = evaluate_combination(computed, parameters)
            return DrawnNumbers(parameters, values, kind.fill_answer_placeholders(answer, values))
        except ExpressionError as error:
            first_error = first_error or error
    raise first_error or ExpressionError("E47", "There is no combination of parameters.")


def compute_seed_for_attempt(question: Question, learner_salt: str, attempt_index: int) -> int:
    """Return the seed of a learner's n-th attempt (from 0) at a question, below 2^31.

    `learner_salt` is any constant of the learner. Two consecutive attempts never draw the same
    numbers if there are several combinations. All combinations occur before one repeats.
    """
    count = count_combinations(question.computed) if question.computed else 1
    start = _integer_hash(f"{learner_salt}:{question.id}")
    if count >= _SEED_COUNT // 2:
        return (start + attempt_index) % _SEED_COUNT
    stride = _coprime_stride(start // 7, count)
    index = (start + attempt_index * stride) % count
    rounds = _integer_hash(f"{learner_salt}:{question.id}:{attempt_index}") % (_SEED_COUNT // count)
    return index + count * rounds


def _integer_hash(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6])


def _coprime_stride(preferred_stride: int, position_count: int) -> int:
    """Return a step that visits all of `position_count` positions before it returns to the first."""
    step = preferred_stride % position_count or 1
    while math.gcd(step, position_count) != 1:
        step += 1
    return step


def count_combinations(computed: QuestionParameters) -> int:
    return math.prod(len(values) for values in computed.possible_values_by_name.values())


def find_combination_index(question: Question, seed: int) -> int:
    """Return which combination a seed draws; seeds with the same one differ only in order."""
    return seed % count_combinations(question.computed) if question.computed else 0


def build_nth_combination(computed: QuestionParameters, index: int) -> dict[str, str | float]:
    """Return the parameters of one combination; an `index` beyond the last wraps around."""
    remaining = index % count_combinations(computed)
    parameters: dict[str, str | float] = {}
    for name, values in computed.possible_values_by_name.items():
        remaining, position = divmod(remaining, len(values))
        parameters[name] = values[position]
    return parameters


def evaluate_combination(
    computed: QuestionParameters, drawn_parameters: Mapping[str, str | float]
) -> dict[str, Value]:
    """Evaluate parameters and expressions; raises ExpressionError.

    A number among the parameters has an unknown unit: only its author knows it.
    """
    values: dict[str, Value] = {
        name: value if isinstance(value, str) else Quantity(value, None)
        for name, value in drawn_parameters.items()
    }
    for name, text in computed.named_expressions:
        values[name] = evaluate_expression(compile_expression(text), values)
    return values


def iterate_variants_up_to_limit(question: Question) -> Iterator[Variant]:
    """Yield all variants of a computed question, or `MAX_VARIANTS` spread evenly.

    A combination without an answer is replaced by the next that has one; raises
    ExpressionError if none has one. A plain question has one variant.
    """
    for seed in list_seeds_up_to_variant_limit(question):
        yield draw_variant(question, seed)


def list_seeds_up_to_variant_limit(question: Question) -> Sequence[int]:
    """Return the seeds of `iterate_variants_up_to_limit`: each combination once, or some spread evenly."""
    count = count_combinations(question.computed) if question.computed else 1
    if count <= MAX_VARIANTS:
        return range(count)
    return [i * count // MAX_VARIANTS for i in range(MAX_VARIANTS)]


def _calculator_url(computed: QuestionParameters, values: Mapping[str, Value]) -> str:
    """Return the URL of the calculator for the first expression that calls an estimate."""
    for _, text in computed.named_expressions:
        for call in compile_expression(text).estimate_calls:
            name = getattr(call.func, "id", "")
            return expressions.calculator_url(name, evaluate_call_inputs_as_form_text(call, values))
    return ""
