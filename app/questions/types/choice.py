"""Single choice, multiple choice, and true/false questions."""

import dataclasses
import functools
import itertools
import math
import random
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import ClassVar, Literal

from app.markup.expressions import Value
from app.markup.model import RichText
from app.markup.problems import ParseContext
from app.questions.option_parsing import (
    Choice,
    ParsedOption,
    build_choices,
    refers_to_other_options,
    report_duplicate_options,
    report_if_no_option_right,
    report_if_too_few_options,
    report_wrong_options_without_feedback,
    sole_code_span_or_none,
)
from app.questions.question_type import (
    AuthoredItem,
    CardFacesHtml,
    GradeResult,
    LabeledResponse,
    PartResult,
    QuestionType,
    RenderGap,
    SubmittedFields,
    UnreadableResponse,
    VariantFault,
    clamp_fraction,
    render_div_blocks,
    render_list_items,
    render_option_with_feedback,
    render_titled_list,
    score_option,
)

ChoiceKind = Literal["single", "multiple", "true-false"]
_COUNT_WORD_PATTERN = r"\s+(?:the\s+|any\s+)?(two|three|four|five|[2-5])\b(?!\s+(?:times|or)\b)"
_CHOOSE_COUNT = re.compile(
    rf"\b(?:choose|select|pick|tick|mark){_COUNT_WORD_PATTERN}", re.IGNORECASE
)
_MAX_SHORT_OPTION_LETTERS = 30
_NUMBER_FIRST = re.compile(
    r"`?[-+−]?\s?[$€£¥]?(?:\d+(?:,\d{3})*(?:\.\d+)?|\{[^{}]*\})\s?(?:[^\s\d.±-]\S*)?\s*(?:±.*)?`?$"
)
_NUMBER_RANGE = re.compile(r"(?P<low>\d[\d.,]*)\s*(?:to|[–—-])\s*(?P<high>\d.*)")
_WHICH_COUNT = re.compile(rf"\bwhich{_COUNT_WORD_PATTERN}", re.IGNORECASE)
_NUMBER_BY_WORD = {"two": 2, "three": 3, "four": 4, "five": 5}
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclasses.dataclass(frozen=True, slots=True)
class ChoiceSpec:
    """Single, multiple or true/false: options of which `right` ones are ticked."""

    kind: ChoiceKind
    options: tuple[Choice, ...]
    shuffle: bool = True


_TRUE_FALSE_MESSAGE = "The options of a true-false question are True and False, in any language."


class ChoiceType(QuestionType[ChoiceSpec]):
    """Base class of the types whose response is a choice among options."""

    answer_classes = (ChoiceSpec, Choice)
    comment_keys = ("shuffle",)
    options_attribute = "options"
    responses_are_option_keys = True
    min_exam_options = 3
    name: ClassVar[ChoiceKind]
    nothing_chosen_message = "No answer is chosen. Choose one."

    def parse_answer(self, authored: AuthoredItem) -> ChoiceSpec:
        comment = authored.comment
        shuffle = comment.field_text("shuffle").lower() not in {"no", "false"}
        choices = build_choices(comment.id, authored.parts.options, authored.context)
        return ChoiceSpec(self.name, choices, shuffle)

    def report_answer_problems(self, answer: ChoiceSpec, authored: AuthoredItem) -> None:
        """Report what breaks the rules that apply to all options."""
        options, parse_context = authored.parts.options, authored.parse_context
        first = options[0].line if options else authored.source.line
        self.report_wrong_ticked_count([o for o in options if o.ticked], parse_context)
        tables = [t for t in authored.parts.stem if t.type == "table_open"]
        if options and tables and not any(o.ticked for o in options):
            hint = "Mark the right one with [x]; or write it into the table of pairs, as a wrong "
            hint += f"answer, with an empty left cell: | | {options[0].plain_text} |"
            report_if_no_option_right(options, first, parse_context, hint)
        # An option that could not be parsed may be the right one, or the third.
        elif not _has_unreadable_option(parse_context):
            report_if_no_option_right(options, first, parse_context)
            use = "" if self._report_if_maybe_meant_to_be_typed(authored) else authored.exam_use
            report_if_too_few_options(
                len(options),
                self.min_exam_options,
                first,
                parse_context,
                exam_use=use,
                hint=_TRUE_FALSE_MESSAGE,
            )
        report_duplicate_options(options, parse_context)
        self.report_missing_option_feedback(options, parse_context)
        if answer.shuffle:
            _report_options_referring_to_others(options, parse_context)

    def _report_if_maybe_meant_to_be_typed(self, authored: AuthoredItem) -> bool:
        """Report W40 if nothing but the missing `type` says that the options are to be chosen."""
        options, texts = (
            authored.parts.options,
            [option.plain_text for option in authored.parts.options],
        )
        unclear = len(options) > 1 and not all(option.ticked for option in options)
        if authored.comment.field_text("type") or self.name == "true-false" or not unclear:
            return False
        are_code = all(sole_code_span_or_none(option) for option in options)
        are_numbers = all(map(_NUMBER_FIRST.match, texts))
        has_tolerance = any("±" in text for text in texts)
        if not are_code and not (are_numbers and (has_tolerance or len(options) < 3)):
            return False
        first = next((o for o in options if o.ticked), options[0])
        hint = "To have it typed, write type: short into the comment"
        span = _NUMBER_RANGE.match(first.plain_text.strip("` "))
        if span:
            low, high = span["low"], span["high"]
            hint = f"To have it typed, write a range with two dots: `{low} .. {high}`"
        elif has_tolerance:
            hint = f"To have it typed, write each option as a number in code: `{first.plain_text}`"
        elif are_numbers:
            hint = f"To have it typed, write a tolerance: `{first.plain_text} ± 2%`"
        message = f"“{first.plain_text[:40]}” is to be chosen here, not typed."
        hint += f"; to have it chosen, write type: {self.name}."
        authored.parse_context.report("W40", first.line, 1, message, hint)
        return True

    def report_wrong_ticked_count(
        self, ticked: Sequence[ParsedOption], parse_context: ParseContext
    ) -> None:
        """Report more right options than the type allows (E21)."""
        if len(ticked) > 1:
            hint = "Take one tick away, or say type: multiple."
            message = f"{len(ticked)} options are marked right in a {self.name} choice."
            parse_context.report("E21", ticked[1].line, 1, message, hint)

    def report_missing_option_feedback(
        self, options: Sequence[ParsedOption], parse_context: ParseContext
    ) -> None:
        report_wrong_options_without_feedback(options, parse_context)

    def report_wording_problems(
        self, answer: ChoiceSpec, stem: RichText, line: int, parse_context: ParseContext
    ) -> None:
        """Report a stem that asks for another number of options than are right, or ends in an article.

        Problem codes: E21, W31.
        """
        self.report_wrong_choice_count_in_stem(answer, stem.plain, line, parse_context)
        match = re.search(r"\b(an?)[\s_.…:]*$", stem.plain.strip().lower())
        if match:
            message = f"The stem ends in “{match[1]}”, which not all options may follow."
            hint = "Write “a(n)”, or move it to the options."
            parse_context.report("W31", line, 1, message, hint)

    def report_wrong_choice_count_in_stem(
        self, answer: ChoiceSpec, stem: str, line: int, parse_context: ParseContext
    ) -> None:
        """Report a number in the stem, as in “choose two”, of which not as many are right (E21).

        “Which two” may ask for a pair, so with one right option only “choose two” counts.
        English only.
        """
        matches = _CHOOSE_COUNT.findall(stem)
        if self.has_several_right_options:
            matches = matches or _WHICH_COUNT.findall(stem)
        if not matches:
            return
        number_word, right_count = matches[-1].lower(), sum(o.right for o in answer.options)
        is_comparable = right_count > 1 if self.has_several_right_options else right_count == 1
        if is_comparable and (_NUMBER_BY_WORD.get(number_word) or int(number_word)) != right_count:
            ticked = f"{right_count} option{'s are' if right_count != 1 else ' is'}"
            message = f"The question asks for {number_word}, and {ticked} ticked."
            hint = "Tick as many as it asks for, or correct the number."
            parse_context.report("E21", line, 1, message, hint)

    def option_comparison_microseconds(self, answer: ChoiceSpec) -> float:
        return 0.2 * len(answer.options) ** 2

    def find_variant_faults(
        self, answer: ChoiceSpec, stem: RichText, values: Mapping[str, Value]
    ) -> list[VariantFault]:
        """Report two options that read the same with these numbers."""
        del stem
        seen: set[str] = set()
        for option in self.fill_answer_placeholders(answer, values).options:
            text = " ".join(option.text.plain.split())
            if text in seen:
                message = f"two options read “{text[:50]}”."
                return [VariantFault("E47", message, "Change the values.")]
            seen.add(text)
        return []

    def shuffle_options(self, answer: ChoiceSpec, rng: random.Random) -> ChoiceSpec:
        """Shuffle the options; those that refer to the others stay last."""
        if not answer.shuffle:
            return answer
        unpinned = [o for o in answer.options if not o.pinned]
        rng.shuffle(unpinned)
        pinned = (o for o in answer.options if o.pinned)
        return dataclasses.replace(answer, options=(*unpinned, *pinned))

    def grade(
        self, answer: ChoiceSpec, raw: SubmittedFields, credit_rule: str
    ) -> GradeResult | UnreadableResponse:
        """Grade the chosen options; `answer` in the response contains their keys."""
        sent_keys = set(raw.get("answer", ()))
        chosen = [o for o in answer.options if o.key in sent_keys]
        if not chosen:
            return UnreadableResponse(self.nothing_chosen_message, "Nothing was counted.")
        if len(chosen) > 1 and not self.has_several_right_options:
            return UnreadableResponse("Choose one answer only.", "Nothing was counted.")
        return GradeResult(
            score=self.score_choice(answer, {o.key for o in chosen}, credit_rule),
            score_basis=self.describe_score_basis(answer, {o.key for o in chosen}, credit_rule),
            parsed_response={"chosen": [o.key for o in chosen]},
            part_results=list_option_results(answer.options, sent_keys),
            given_answer=join_option_letters(answer.options, chosen),
            right_answer=join_option_letters(
                answer.options, [o for o in answer.options if o.right]
            ),
        )

    def score_choice(self, answer: ChoiceSpec, chosen_keys: set[str], credit_rule: str) -> float:
        del credit_rule
        return min(score_option(o) for o in answer.options if o.key in chosen_keys)

    def describe_score_basis(
        self, answer: ChoiceSpec, chosen_keys: set[str], credit_rule: str
    ) -> str:
        """Return what the score counts; empty if it is worth what the option is."""
        del answer, chosen_keys, credit_rule
        return ""

    def build_some_valid_response(self, answer: ChoiceSpec) -> SubmittedFields:
        return {"answer": [answer.options[0].key]}

    def render_card_faces_below_stem(
        self, answer: ChoiceSpec, render_gap: RenderGap
    ) -> CardFacesHtml:
        """Return the options with letters, then the right ones and the feedback of the others."""
        del render_gap
        return render_choice_card_faces(answer.options)

    def sample_responses(self, answer: ChoiceSpec) -> Iterator[LabeledResponse]:
        for option in sorted(answer.options, key=lambda o: not o.right):
            yield LabeledResponse(option.text.plain, {"answer": [option.key]})

    def compute_guess_score(self, answer: ChoiceSpec, credit_rule: str) -> float:
        """Return the mean score of the options: 1 ÷ k if one of k is right."""
        del credit_rule
        partial_credit = sum(o.credit for o in answer.options if not o.right)
        return (1 + partial_credit) / max(1, len(answer.options))

    def compute_guess_percent(self, answer: ChoiceSpec) -> float | None:
        right = sum(option.right for option in answer.options)
        return compute_choice_guess_percent(self.name, len(answer.options), right)


def _has_unreadable_option(parse_context: ParseContext) -> bool:
    problems = parse_context.problems[parse_context.problem_count_before_item :]
    return any(p.code == "E24" and p.item == parse_context.current_item for p in problems)


def _report_options_referring_to_others(
    options: Sequence[ParsedOption], parse_context: ParseContext
) -> None:
    """Warn about options that refer to the others, since options are shuffled (W28)."""
    for option in options:
        if refers_to_other_options(option.plain_text):
            message = f"“{option.plain_text[:40]}” stands among shuffled options."
            hint = "It is kept last; better name what is meant, or say shuffle: no."
            parse_context.report("W28", option.line, 1, message, hint)


def infer_choice_kind(options: Sequence[ParsedOption]) -> ChoiceKind:
    if {o.plain_text.strip(" .").lower() for o in options} == {"true", "false"}:
        return "true-false"
    return "multiple" if sum(o.ticked for o in options) > 1 else "single"


def list_option_results(
    options: Sequence[Choice], chosen_keys: Collection[str]
) -> tuple[PartResult, ...]:
    """Return each option with whether it was chosen, and whether that was right."""
    return tuple(
        PartResult(
            key=option.key,
            label=LETTERS[index % len(LETTERS)],
            text=option.text,
            chosen=option.key in chosen_keys,
            should_be_chosen=option.right,
            is_right=(option.key in chosen_keys) == option.right,
            feedback=option.feedback,
        )
        for index, option in enumerate(options)
    )


def join_option_letters(options: Sequence[Choice], selected_options: Sequence[Choice]) -> str:
    return ", ".join(LETTERS[options.index(o) % len(LETTERS)] for o in selected_options)


def render_choice_card_faces(options: Sequence[Choice]) -> CardFacesHtml:
    lettered = [(LETTERS[i % len(LETTERS)], option) for i, option in enumerate(options)]
    items = render_list_items(option.text.html for option in options)
    right = [
        f"<b>{letter}.</b> {render_option_with_feedback(o)}" for letter, o in lettered if o.right
    ]
    others = [
        f"<b>{letter}.</b> {o.feedback.html}"
        for letter, o in lettered
        if not o.right and o.feedback.html
    ]
    back = render_div_blocks(right) + render_titled_list("Why not the others", others)
    return CardFacesHtml(f'<ol class="letters" type="A">{items}</ol>', back)


def compute_choice_guess_percent(
    type_name: str, option_count: int, right_count: int
) -> float | None:
    """Return the percent that blind guessing earns; None if it is undefined.

    >>> compute_choice_guess_percent("single", 4, 1)
    25.0
    """
    if type_name == "true-false":
        return 50.0
    if type_name == "single" and option_count:
        return 100.0 / option_count
    if type_name == "multiple" and option_count:
        return 100.0 / math.comb(option_count, right_count)
    return None


class SingleChoiceType(ChoiceType):
    """One right option among several."""

    name = "single"
    template = "questions/single.html"
    supports_weighted_options = True
    is_in_real_exam = True
    is_in_scaffolded_topics = True

    def report_answer_problems(self, answer: ChoiceSpec, authored: AuthoredItem) -> None:
        """Report broken rules of options, and cues that give away the right one."""
        super().report_answer_problems(answer, authored)
        if sum(o.ticked for o in authored.parts.options) == 1:
            _report_answer_cues(authored.parts.options, authored.parse_context)

    def guessable_position_of_only_right_option(self, answer: ChoiceSpec) -> int | None:
        right = [i for i, option in enumerate(answer.options) if option.right]
        return right[0] if right else None


def _report_answer_cues(options: Sequence[ParsedOption], parse_context: ParseContext) -> None:
    """Report cues that give the right option away (W26, W27)."""
    right = next(o for o in options if o.ticked)
    wrong = [o for o in options if not o.ticked]
    longest = max((len(o.plain_text) for o in wrong), default=0)
    if wrong and len(right.plain_text) > max(1.4 * longest, longest + 15):
        message = f"The right option has {len(right.plain_text)} letters, the longest other "
        message += f"{longest}."
        parse_context.report("W26", right.line, 1, message, "Make the options alike in length.")
    for name, has_form in _OPTION_TEST_BY_FORM.items():
        if wrong and has_form(right) and not any(has_form(o) for o in wrong):
            message = f"Only the right option {name}."
            hint = "Give the wrong options the same form."
            parse_context.report("W27", right.line, 1, message, hint)


def _option_contains_token(token_type: str, option: ParsedOption) -> bool:
    return any(c.type == token_type for c in option.text_token.children or [])


_OPTION_TEST_BY_FORM: dict[str, Callable[[ParsedOption], bool]] = {
    "is in code style": lambda o: _option_contains_token("code_inline", o),
    "has bold words": lambda o: _option_contains_token("strong_open", o),
    "has a number": lambda o: bool(re.search(r"\d", o.plain_text)),
}


class MultipleChoiceType(ChoiceType):
    """Several right options, scored by the item's own rule."""

    name = "multiple"
    template = "questions/multiple.html"
    has_several_right_options = True
    supports_partial_credit = True
    credit_rules = ("off", "net", "each")
    is_in_real_exam = True
    is_in_scaffolded_topics = True
    nothing_chosen_message = "No answer is ticked. Tick all that are right."

    def write_several_right_note(self, stem: RichText) -> str:
        says_how_many = _CHOOSE_COUNT.search(stem.plain) or _WHICH_COUNT.search(stem.plain)
        return "" if says_how_many else "More than one may be right."

    def describe_missing_input(
        self, answer: ChoiceSpec, raw: SubmittedFields, stem: RichText
    ) -> str:
        if not self.describe_incomplete_response(answer, raw, stem):
            return ""
        right_count = sum(o.right for o in answer.options)
        chosen_count = len(set(raw.get("answer", ())))
        verb = "is" if chosen_count == 1 else "are"
        return f"Choose {right_count}; {chosen_count} {verb} chosen."

    def describe_incomplete_response(
        self, answer: ChoiceSpec, raw: SubmittedFields, stem: RichText
    ) -> str:
        right_count = sum(o.right for o in answer.options)
        chosen_count = len(set(raw.get("answer", ())))
        says_how_many = _CHOOSE_COUNT.search(stem.plain) or _WHICH_COUNT.search(stem.plain)
        if not says_how_many or chosen_count == right_count:
            return ""
        return f"{chosen_count} of {right_count} chosen"

    def report_wrong_ticked_count(
        self, ticked: Sequence[ParsedOption], parse_context: ParseContext
    ) -> None:
        """Report a single right option, since learners are told of several (E21)."""
        if len(ticked) == 1:
            message = "1 option is marked right in a multiple choice."
            hint = "Mark another one, or leave the type out."
            parse_context.report("E21", ticked[0].line, 1, message, hint)

    def report_answer_problems(self, answer: ChoiceSpec, authored: AuthoredItem) -> None:
        """Report that every option is right (E33)."""
        super().report_answer_problems(answer, authored)
        parse_context = authored.parse_context
        is_every_option_right = len(answer.options) > 1 and all(o.right for o in answer.options)
        if is_every_option_right and not _has_unreadable_option(parse_context):
            line = authored.parts.options[0].line
            hint = "Add an option that is wrong and likely, or take a tick away."
            if all(sole_code_span_or_none(option) for option in authored.parts.options):
                hint = "If the answer is to be typed, write type: short into its comment."
            elif all(
                len(option.plain_text) < _MAX_SHORT_OPTION_LETTERS
                for option in authored.parts.options
            ):
                hint += " If it is to be typed, write each as code, and type: short in the comment."
            message = "Every option is marked right."
            parse_context.report("E33", line, 1, message, hint)

    def score_choice(self, answer: ChoiceSpec, chosen_keys: set[str], credit_rule: str) -> float:
        right = {o.key for o in answer.options if o.right}
        return compute_choice_credit(right, chosen_keys, len(answer.options), credit_rule)

    def describe_score_basis(
        self, answer: ChoiceSpec, chosen_keys: set[str], credit_rule: str
    ) -> str:
        right = {o.key for o in answer.options if o.right}
        if credit_rule == "each":
            boxes = len(answer.options)
            judged = boxes - len(right ^ chosen_keys)
            return f"your decision is right for {judged} of the {boxes} options"
        if credit_rule in {"", "off"}:
            return "only the whole answer counts"
        return f"{len(right & chosen_keys)} right less {len(chosen_keys - right)} wrong, of {len(right)}"

    def sample_responses(self, answer: ChoiceSpec) -> Iterator[LabeledResponse]:
        right = [o.key for o in answer.options if o.right]
        yield LabeledResponse("All that are right", {"answer": right})
        for option in answer.options:
            yield LabeledResponse(f"Only “{option.text.plain}”", {"answer": [option.key]})
        yield LabeledResponse("Everything", {"answer": [o.key for o in answer.options]})

    def compute_guess_score(self, answer: ChoiceSpec, credit_rule: str) -> float:
        """Return the mean score of random ticks by the question's own rule."""
        right = sum(option.right for option in answer.options)
        return _mean_credit_of_random_ticks(right, len(answer.options) - right, credit_rule)


def compute_choice_credit(
    right_keys: Collection[str], chosen_keys: Collection[str], option_count: int, credit_rule: str
) -> float:
    """Return the score 0..1 for choosing `chosen_keys` of `option_count` options where `right_keys` is right.

    - `off` (and nothing): all or nothing
    - `net`: (hits − misses) ÷ number of right options, never below 0; so does `coverage`,
      which stored questions may still say
    - `each`: the share of boxes, ticked or not, that are right; 0 if no right one is ticked
    """
    right, chosen = set(right_keys), set(chosen_keys)
    hits, misses = len(right & chosen), len(chosen - right)
    return _credit_of_hits_and_misses(
        hits, misses, len(right), option_count - len(right), credit_rule
    )


@functools.cache
def _mean_credit_of_random_ticks(right_count: int, wrong_count: int, credit_rule: str) -> float:
    """Return the mean score of random ticks, at least one of them."""
    total = 0.0
    for hits, misses in itertools.product(range(right_count + 1), range(wrong_count + 1)):
        combinations = math.comb(right_count, hits) * math.comb(wrong_count, misses)
        if hits or misses:
            total += combinations * _credit_of_hits_and_misses(
                hits, misses, right_count, wrong_count, credit_rule
            )
    return total / (math.pow(2, right_count + wrong_count) - 1)


def _credit_of_hits_and_misses(
    hits: int, misses: int, right_count: int, wrong_count: int, credit_rule: str
) -> float:
    if credit_rule == "each":
        return (
            0.0
            if right_count and not hits
            else clamp_fraction(hits + wrong_count - misses, right_count + wrong_count)
        )
    if credit_rule in {"net", "coverage"}:
        return clamp_fraction(hits - misses, right_count)
    return float(hits == right_count and not misses)


class TrueFalseType(ChoiceType):
    """Two options in a fixed order."""

    name = "true-false"
    template = "questions/true-false.html"
    min_exam_options = 2

    def parse_answer(self, authored: AuthoredItem) -> ChoiceSpec:
        """Return the two options in authored order."""
        choices = build_choices(authored.comment.id, authored.parts.options, authored.context)
        return ChoiceSpec("true-false", choices, shuffle=False)

    def report_missing_option_feedback(
        self, options: Sequence[ParsedOption], parse_context: ParseContext
    ) -> None:
        if not any(o.feedback for o in options):
            report_wrong_options_without_feedback(options, parse_context)

    def report_wrong_choice_count_in_stem(
        self, answer: ChoiceSpec, stem: str, line: int, parse_context: ParseContext
    ) -> None:
        """Report nothing: a statement asks for no number of options."""

    def right_answer_texts(self, answer: ChoiceSpec) -> list[str]:
        """Return nothing: “true” in a hint gives nothing away."""
        del answer
        return []

    def answer_key_fingerprint_texts(self, answer: ChoiceSpec) -> list[str]:
        """Return the side that is ticked."""
        return super().right_answer_texts(answer)

    def shuffle_options(self, answer: ChoiceSpec, rng: random.Random) -> ChoiceSpec:
        """Return the options in authored order."""
        del rng
        return answer
