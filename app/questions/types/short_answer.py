"""Short-answer questions: a typed word or phrase."""

import dataclasses
from collections.abc import Iterator, Mapping
from html import escape

from app.markup import expressions
from app.markup.expressions import Value
from app.markup.model import NO_TEXT, RichText
from app.questions.option_parsing import (
    TWO_ANSWERS_PATTERN,
    make_option_key,
    read_sole_code_span_or_report,
    render_optional_rich_text,
    report_unticked_repeated_or_unexplained_options,
)
from app.questions.question_type import (
    MAX_RESPONSE_LENGTH,
    AuthoredItem,
    CardFacesHtml,
    GradeResult,
    LabeledResponse,
    QuestionType,
    RenderGap,
    StatisticsOption,
    SubmittedFields,
    UnreadableResponse,
    first_field_value_or_empty,
    is_same_phrase,
    render_div_blocks,
    render_titled_list,
    score_option,
)


@dataclasses.dataclass(frozen=True, slots=True)
class ShortAnswerOption:
    """A word accepted or foreseen as a short answer."""

    key: str
    answer: str
    right: bool
    feedback: RichText = NO_TEXT
    credit: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class ShortAnswerSpec:
    options: tuple[ShortAnswerOption, ...]
    case_sensitive: bool = False


class ShortAnswerType(QuestionType[ShortAnswerSpec]):
    """A typed word; hyphens and end punctuation are ignored."""

    name = "short"
    answer_classes = (ShortAnswerSpec, ShortAnswerOption)
    template = "questions/short.html"
    comment_keys = ("case",)
    options_attribute = "options"
    supports_weighted_options = True

    def parse_answer(self, authored: AuthoredItem) -> ShortAnswerSpec:
        made = []
        taken: set[str] = set()
        for option in authored.parts.options:
            answer = read_sole_code_span_or_report(option, authored.parse_context)
            if answer is not None:
                why = render_optional_rich_text(option.feedback, authored.context)
                name = make_option_key(authored.comment.id, option, taken)
                words, credit = answer.strip(), option.credit
                made.append(ShortAnswerOption(name, words, option.ticked, why, credit))
        return ShortAnswerSpec(tuple(made), authored.comment.is_set_to_yes("case"))

    def report_answer_problems(self, answer: ShortAnswerSpec, authored: AuthoredItem) -> None:
        """Report problems of options, and answers that are no word or phrase (E24)."""
        for option, short in zip(authored.parts.options, answer.options, strict=False):
            if is_same_phrase(short.answer, "") and not authored.has_computed_parameters:
                message = f"The answer “{short.answer}” holds no word to be typed."
                option.report_problem("E24", message, "Write a word.", authored.parse_context)
            elif "|" in short.answer:
                message = f"“{short.answer}” would have to be typed with its bar."
                first = short.answer.partition("|")[0].strip()
                hint = f"Write each answer as an option: - [x] `{first}`"
                option.report_problem("E24", message, hint, authored.parse_context)
            elif two := TWO_ANSWERS_PATTERN.match(short.answer):
                message = f"“{short.answer}” has to be typed as a whole."
                hint = f"Write each answer as an option: - [x] `{two[1]}` and - [x] `{two[2]}`"
                option.report_problem("W40", message, hint, authored.parse_context)
        report_unticked_repeated_or_unexplained_options(
            authored.parts.options, authored.answer_or_item_line, authored.parse_context
        )

    def options_for_statistics(self, answer: ShortAnswerSpec) -> tuple[StatisticsOption, ...]:
        return tuple(StatisticsOption(o.key, o.answer, o.right, o.credit) for o in answer.options)

    def fill_answer_placeholders(
        self, answer: ShortAnswerSpec, values: Mapping[str, Value]
    ) -> ShortAnswerSpec:
        """Fill the templates in accepted words, too."""
        made = super().fill_answer_placeholders(answer, values)
        options = tuple(
            dataclasses.replace(o, answer=expressions.fill_placeholders(o.answer, values))
            for o in made.options
        )
        return dataclasses.replace(made, options=options)

    def grade(
        self, answer: ShortAnswerSpec, raw: SubmittedFields, credit_rule: str
    ) -> GradeResult | UnreadableResponse:
        """Grade a typed word or phrase; `answer` in the response contains it."""
        del credit_rule
        typed = first_field_value_or_empty(raw, "answer")
        if not typed:
            return UnreadableResponse("Nothing is typed.", "Type a word or a short phrase.")
        if len(typed) > MAX_RESPONSE_LENGTH:
            return UnreadableResponse(
                f"The answer is longer than {MAX_RESPONSE_LENGTH} characters."
            )
        option = _find_matching_option(answer, typed)
        right = [o.answer for o in answer.options if o.right]
        return GradeResult(
            score=score_option(option),
            parsed_response={"text": typed, "option": option.key if option else ""},
            given_answer=f"“{typed}”",
            right_answer=" or ".join(f"“{r}”" for r in right),
            feedback=option.feedback if option else RichText("", ""),
        )

    def render_card_faces_below_stem(
        self, answer: ShortAnswerSpec, render_gap: RenderGap
    ) -> CardFacesHtml:
        del render_gap
        right = [escape(o.answer) for o in answer.options if o.right]
        others = [
            f"<b>{escape(o.answer)}</b> {o.feedback.html}"
            for o in answer.options
            if not o.right and o.feedback.html
        ]
        back = render_div_blocks([f"<b>{' or '.join(right)}</b>"])
        asked = "<p>A word or a short phrase.</p>"
        return CardFacesHtml(asked, back + render_titled_list("Wrong answers", others))

    def sample_responses(self, answer: ShortAnswerSpec) -> Iterator[LabeledResponse]:
        for option in answer.options:
            yield LabeledResponse(f"“{option.answer}”", {"answer": [option.answer]})
        yield LabeledResponse("Something else", {"answer": ["something else"]})


def _find_matching_option(answer: ShortAnswerSpec, typed: str) -> ShortAnswerOption | None:
    for option in sorted(answer.options, key=score_option, reverse=True):
        if is_same_phrase(option.answer, typed, case_sensitive=answer.case_sensitive):
            return option
    return None
