"""Question types: their base class, results of grading, the authored item, card faces."""

import abc
import dataclasses
import math
import random
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Protocol, TypeVar

from markdown_it.token import Token

from app.markup import expressions, lenient_yaml
from app.markup.expressions import Value
from app.markup.html_renderer import RenderContext
from app.markup.lenient_yaml import YamlMapping
from app.markup.model import NO_TEXT, RichText, SvgFigure
from app.markup.problems import ParseContext, TextPosition
from app.questions.option_parsing import Choice, ParsedOption

SubmittedFields = Mapping[str, Sequence[str]]
Result = Literal["right", "partly", "wrong"]

_MIN_FULL_SCORE = 1 - 1e-9
MAX_RESPONSE_LENGTH = 200


class ScorableOption(Protocol):
    """Protocol for something chosen or typed that is right, or worth partial credit."""

    @property
    def right(self) -> bool: ...
    @property
    def credit(self) -> float: ...


def score_option(option: ScorableOption | None) -> float:
    """Return the score 0..1 of a chosen or typed option; 0 if no option matches."""
    if option is None:
        return 0.0
    return 1.0 if option.right else option.credit


def classify_score(score: float) -> Result:
    """Return a score, 0 to 1, as one of three words."""
    if score >= _MIN_FULL_SCORE:
        return "right"
    return "partly" if score > 0 else "wrong"


@dataclasses.dataclass(frozen=True, slots=True)
class PartResult:
    """The result of one part: an option, a step, a row, a gap.

    `label` names it (“A”, “2.”, the left cell). Options have `chosen` and `should_be_chosen`,
    other parts `given_answer` and `right_answer`. `is_right` is whether the learner got this
    part right.
    """

    key: str
    label: str
    text: RichText
    chosen: bool
    should_be_chosen: bool
    is_right: bool
    given_answer: RichText = NO_TEXT
    right_answer: RichText = NO_TEXT
    feedback: RichText = NO_TEXT


@dataclasses.dataclass(frozen=True, slots=True)
class GradeResult:
    """The result of one response.

    `score` is 0..1; `parsed_response` is the parsed response, ready for JSON; both answers are text;
    `feedback` belongs to the whole response (a foreseen wrong number). `near_miss_message` is
    for a response that may be corrected, with the same numbers, before the solution is shown.
    `unreadable_reason` says why a response given in an exam could not be graded. `score_basis`
    says how the score of an answer in several parts comes about, `points_text` how many of the
    points it counts were earned, if it counts points.
    """

    score: float
    parsed_response: Mapping[str, Any]
    part_results: tuple[PartResult, ...] = ()
    given_answer: str = ""
    right_answer: str = ""
    feedback: RichText = NO_TEXT
    near_miss_message: str = ""
    unreadable_reason: str = ""
    score_basis: str = ""
    points_text: str = ""

    @property
    def result(self) -> Result:
        return classify_score(self.score)

    @property
    def solution_as_unanswered(self) -> "GradeResult":
        """Return the solution as the result of an unanswered question: no points."""
        marks = tuple(
            dataclasses.replace(mark, chosen=False, given_answer=NO_TEXT, is_right=False)
            for mark in self.part_results
        )
        return dataclasses.replace(
            self, score=0.0, part_results=marks, given_answer="", near_miss_message=""
        )


@dataclasses.dataclass(frozen=True, slots=True)
class UnreadableResponse:
    """A response that cannot be parsed; it is rejected and does not count as an attempt."""

    message: str
    hint: str = ""


def first_field_value_or_empty(raw: SubmittedFields, name: str) -> str:
    """Return the single value of a field, stripped; empty if there is not exactly one."""
    values = raw.get(name) or [""]
    return values[0].strip()


def clamp_fraction(numerator: float, denominator: float) -> float:
    """Return `numerator` of `denominator`, clamped to 0..1."""
    return min(1.0, max(0.0, numerator / denominator)) if denominator else 0.0


def score_by_right_parts(right_count: float, part_count: int, credit_rule: str) -> float:
    """Return the share of right parts, or all or nothing for the rule `off`."""
    return (
        float(right_count == part_count)
        if credit_rule == "off"
        else clamp_fraction(right_count, part_count)
    )


def escape_typed_text(text: str) -> RichText:
    return RichText(escape(text), text)


@dataclasses.dataclass(frozen=True, slots=True)
class ConfidenceLevel:
    """A confidence level, and the share (0..1) of such answers that are right."""

    label: str
    target_probability_text: str
    min_right_share: float
    max_right_share: float


# If answers are scored by confidence, “think so” pays from 67% right and “sure” from
# 80%. Below that is a guess, down to one choice in four.
CONFIDENCE_LEVELS = (
    ConfidenceLevel("Guess", "25 to 66%", 0.25, 0.67),
    ConfidenceLevel("Think so", "67 to 79%", 0.67, 0.80),
    ConfidenceLevel("Sure", "80% or more", 0.80, 1.0),
)
"""From the least to the most confident. An attempt stores the position, from 1."""

# Invisible characters: what Unicode names
# Default_Ignorable_Code_Point (zero-width spaces and joiners, soft hyphens, byte order
# marks, marks of the writing direction, variation selectors, fillers of Hangul).
_INVISIBLE_CHARACTER = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    "\U000e0000-\U000e0fff]"
)
# After letters of scripts that join or shape letters, a joiner is part of the word.
_SCRIPT_JOINER = re.compile("(?<=[\u0600-\U0010ffff])[\u200c\u200d]")
# Compatibility forms of a letter: full width, half width, or ligature.
_COMPATIBILITY_CHARACTERS = re.compile("[\u3000\ufb00-\ufb06\uff01-\uffef]+")
_SINGLE_QUOTES = (
    "\u2018\u2019\u201a\u201b\u2039\u203a\u02bb\u02bc\u00b4\u275b\u275c\u275f"
    "\u2032\u2035\u05f3\u276e\u276f\u27e8\u27e9\u2329\u232a"
)
_DOUBLE_QUOTES = (
    "\u201c\u201d\u201e\u201f\u00ab\u00bb\u275d\u275e\u2e42\u3008\u3009\u300a\u300b"
    "\u300c\u300d\u300e\u300f\u301d\u301e\u301f\u2033\u2036\u05f4\u2760\u27ea\u27eb"
    "\U0001f676\U0001f677\U0001f678"
)
QUOTES = f"'\"{_SINGLE_QUOTES}{_DOUBLE_QUOTES}"
"""Quotation marks of every language."""
_PLAIN_QUOTE_BY_QUOTE = str.maketrans(
    _SINGLE_QUOTES + _DOUBLE_QUOTES, "'" * len(_SINGLE_QUOTES) + '"' * len(_DOUBLE_QUOTES)
)
# Punctuation that ends a sentence or clause in any script: Unicode's
# Terminal_Punctuation, and the marks that begin a sentence in Spanish.
_PUNCTUATION_CHARACTERS = (
    ".,;:!?\u2026\u203c\u203d\u2047-\u2049\u2e2e\u2e3c\u2e41\u00a1\u00bf\u00b7\u0589"
    "\u055c\u055e\u05c3\u060c\u061b\u061d-\u061f\u06d4\u0700-\u070c\u07f8\u07f9"
    "\u0830-\u083e\u085e\u0964\u0965\u0e5a\u0e5b\u0f08\u0f0d-\u0f12\u104a\u104b"
    "\u1361-\u1368\u166e\u16eb-\u16ed\u1735\u1736\u17d4-\u17d6\u17da\u1801-\u1805"
    "\u1808\u1809\u1944\u1945\u1aa8-\u1aab\u1b5a-\u1b5f\u1c3b-\u1c3f\u1c7e\u1c7f"
    "\u3001\u3002\ua4fe\ua4ff\ua60d-\ua60f\ua6f3-\ua6f7\ua876\ua877\ua8ce\ua8cf"
    "\ua92f\ua9c7-\ua9c9\uaa5d-\uaa5f\uaaf0\uaaf1\uabeb"
)
_SURROUNDING_PATTERN = f"[\\s{_PUNCTUATION_CHARACTERS}\"'`]+"
_BESIDE_SIGN = re.compile(r"\s*([,:;()])\s*")  # full-width signs bring their own space
_SURROUNDING_PUNCTUATION = re.compile(f"^{_SURROUNDING_PATTERN}|{_SURROUNDING_PATTERN}$")


def is_same_phrase(first_text: str, second_text: str, *, case_sensitive: bool = False) -> bool:
    """Compare two phrases, ignoring spacing, hyphens, quotes, and end punctuation.

    >>> is_same_phrase("All-Reduce", "all reduce")
    True
    >>> is_same_phrase("„prefill“", "prefill。")
    True
    >>> is_same_phrase("KV caches", "KV cache")
    False
    """
    return _normalize_for_comparison(first_text, case_sensitive) == _normalize_for_comparison(
        second_text, case_sensitive
    )


def remove_invisible_characters(text: str) -> str:
    """Remove invisible characters and normalize compatibility forms of letters.

    The text looks the same afterward.
    """
    normalized = _COMPATIBILITY_CHARACTERS.sub(lambda m: unicodedata.normalize("NFKC", m[0]), text)
    parts = _SCRIPT_JOINER.split(normalized)
    joiners = _SCRIPT_JOINER.findall(normalized)
    visible_parts = [
        unicodedata.normalize("NFC", _INVISIBLE_CHARACTER.sub("", part)) for part in parts
    ]
    return "".join(a + b for a, b in zip(visible_parts, [*joiners, ""], strict=True))


def normalize_search_text(text: str) -> str:
    """Normalize text for search: visible characters only, in lower case.

    >>> normalize_search_text("«Pre\u00adFILL»")
    '"prefill"'
    """
    return remove_invisible_characters(text).translate(_PLAIN_QUOTE_BY_QUOTE).casefold()


def split_search_query(query: str) -> list[str]:
    """Split a search query into normalized words, without the quotes around them.

    >>> split_search_query("„KV cache“")
    ['kv', 'cache']
    """
    words = (word.strip("\"'") for word in normalize_search_text(query).split())
    return [word for word in words if word]


def _normalize_for_comparison(text: str, case_sensitive: bool) -> str:
    # A standalone acute accent is a quote; NFKC would turn it into a space.
    plain = unicodedata.normalize("NFKC", text.translate(_PLAIN_QUOTE_BY_QUOTE))
    visible = unicodedata.normalize("NFKC", _INVISIBLE_CHARACTER.sub("", plain))
    quoted = "".join(
        "-" if unicodedata.category(c) == "Pd" or c in "\u2043\u2212" else c
        for c in visible.translate(_PLAIN_QUOTE_BY_QUOTE)
    )
    joined = re.sub(r"[\s_-]+", _remove_gap_within_word, _SURROUNDING_PUNCTUATION.sub("", quoted))
    spaced = _BESIDE_SIGN.sub(r"\1", " ".join(joined.split()))
    return spaced if case_sensitive else spaced.casefold()


def _remove_gap_within_word(gap: re.Match[str]) -> str:
    """Return "" for a gap between two letters or digits; else the gap itself."""
    beside = gap.string[max(gap.start() - 1, 0)] + gap.string[gap.end() : gap.end() + 1]
    inside = all(c.isalnum() or unicodedata.category(c)[0] == "M" for c in beside)
    return "" if inside and len(beside) > 1 else gap[0]


NINE_IN_TEN, NINETEEN_IN_TWENTY = 1.645, 1.96
"""Values of z in `compute_wilson_interval` for ranges that hold the true value in 90% and 95% of cases."""


def compute_wilson_interval(
    successes: float, trials: int, z_score: float = NINE_IN_TEN
) -> tuple[float, float]:
    """Return the 90% Wilson interval (0..1) of the share `successes` ÷ `trials`.

    It keeps a width at 0 and 1.

    (p + z²/2n ± z·√(p(1−p)/n + z²/4n²)) ÷ (1 + z²/n).

    >>> tuple(round(x, 2) for x in compute_wilson_interval(7, 10))
    (0.44, 0.87)
    """
    if not trials:
        return 0.0, 1.0
    share, spread = successes / trials, z_score**2 / trials
    middle = (share + spread / 2) / (1 + spread)
    noise = share * (1 - share) / trials + spread / (4 * trials)
    half = z_score * math.sqrt(noise) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


class CardFacesHtml(NamedTuple):
    """The front and back of a card, as safe HTML; of a question type, their parts below the stem."""

    front: str
    back: str


def render_list_items(items_html: Iterable[str]) -> str:
    return "".join(f"<li>{part}</li>" for part in items_html)


def render_div_blocks(blocks_html: Iterable[str]) -> str:
    return "".join(f"<div>{part}</div>" for part in blocks_html)


def render_titled_list(title: str, items_html: list[str]) -> str:
    """Render the parts under a title; empty without parts."""
    if not items_html:
        return ""
    return (
        f'<div class="others"><p><b>{title}</b></p><ul>{render_list_items(items_html)}</ul></div>'
    )


def render_option_with_feedback(choice: Choice) -> str:
    return f"{choice.text.html}{render_feedback(choice.feedback)}"


def render_feedback(feedback: RichText) -> str:
    return f'<div class="why">{feedback.html}</div>' if feedback.html else ""


def wrap_in_div(text: RichText) -> str:
    return f"<div>{text.html}</div>" if text.html else ""


@dataclasses.dataclass(frozen=True, slots=True)
class ItemComment:
    id: str
    fields: YamlMapping
    first_line: int
    column: int

    def field_text(self, name: str) -> str:
        return lenient_yaml.text_or_empty(self.fields.values.get(name))

    def is_set_to_yes(self, name: str) -> bool:
        """Return whether a key that defaults to no is set to yes."""
        return self.field_text(name).lower() in {"yes", "true"}

    def field_location(self, name: str) -> TextPosition:
        """Return the position of a key's value, or of the comment if the key is absent."""
        node = self.fields.values.get(name)
        return TextPosition(*((node.line, node.column) if node else (self.first_line, self.column)))


@dataclasses.dataclass(slots=True)
class ItemSource:
    """An item as written: its heading, its comment and what follows them.

    `text` is all of it.
    """

    heading: Token
    comment: ItemComment
    body: list[Token]
    line: int
    level: int
    text: str
    has_invalid_comment: bool = False
    text_after_comment: str = ""


@dataclasses.dataclass(slots=True)
class ItemParts:
    """The blocks of an item by their role.

    `answer_block` is the list or table from which some types read their answer.
    """

    stem: list[Token]
    options: list[ParsedOption]
    answer_block: list[Token]
    hints: list[list[Token]]
    explanation: list[Token]
    mistake: list[Token]
    answer_line: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class AuthoredItem:
    """What a type reads its answer from. `has_computed_parameters`: numbers are drawn later.

    `is_file_open_to_exams` is whether mock exams draw from its file at all.
    """

    source: ItemSource
    parts: ItemParts
    context: RenderContext
    has_computed_parameters: bool = False
    is_file_open_to_exams: bool = False

    @property
    def comment(self) -> ItemComment:
        return self.source.comment

    @property
    def parse_context(self) -> ParseContext:
        return self.context.parse_context

    @property
    def exam_use(self) -> str:
        """Whether mock exams draw it: “only” they do, “maybe”, or empty for never."""
        if self.comment.field_text("use").lower() == "exam":
            return "only"
        deeper = self.comment.field_text("level").lower() == "deeper"
        return "maybe" if self.is_file_open_to_exams and not deeper else ""

    @property
    def answer_or_item_line(self) -> int:
        return self.parts.answer_line or self.source.line


A = TypeVar("A")
DraftFields = Mapping[str, Sequence[str]]
AnsweredMark = Literal["yes", "no", ""]
"""Whether the learner marked a question as answered; empty if they did not say."""
RenderGap = Callable[[str], str]
"""Draws a gap. It gets the hint as HTML, which may be empty."""


class LabeledResponse(NamedTuple):
    """A sample response, with words that describe it."""

    label: str
    fields: SubmittedFields


class ResultColumnTitles(NamedTuple):
    part: str
    right_answer: str


@dataclasses.dataclass(frozen=True, slots=True)
class SubmittedResponse(Generic[A]):
    """An answer as one attempt saw it, and what was submitted."""

    drawn_answer: A
    fields: SubmittedFields


class StatisticsOption(NamedTuple):
    """An option in answer statistics: its key, its text, whether it is right.

    `credit` is its partial credit if it is not right.
    """

    key: str
    text: str
    right: bool
    credit: float = 0.0


class VariantFault(NamedTuple):
    code: str
    message: str
    hint: str = ""


class QuestionType(abc.ABC, Generic[A]):
    """A question type, from Markdown to statistics.

    `name` is its `type` in the comment. `answer_classes` are the classes of its answer, the answer
    itself first. `comment_keys` are its own keys of the comment; if there is a `key_implying_type`, only an
    item with it can be of this type without saying so. `answer_block_type` is the token that opens
    the list or table with its answer, or `fence` and the name of a block; `may_have_several_answer_blocks`
    is whether there may be several, each with a quote below. `gap_pattern` is the Markdown of a
    gap, if the answer is in the stem. `has_option_boxes` is whether authors mark its options
    with boxes, `is_in_scaffolded_topics` whether scaffolded topics contain one, `needs_calculators`
    whether it needs a course with calculators.

    `template` has its macros `form` and `feedback`, and `exam` if exams use another form.
    `form_fields` are the names of its form fields, or their prefixes up to a dot; `unanswering_form_fields`
    are no answer by themselves. `options_attribute` is the field of the answer that lists keyed
    options, `responses_are_option_keys` whether a response names some of them, and `min_exam_options` how
    many of them a question of a mock exam has. `is_each_field_an_answer` is whether each form
    field is an answer of its own.
    """

    name: ClassVar[str]
    answer_classes: ClassVar[tuple[type, ...]]
    template: ClassVar[str]
    comment_keys: ClassVar[tuple[str, ...]] = ()
    key_implying_type: ClassVar[str] = ""
    form_fields: ClassVar[tuple[str, ...]] = ("answer",)
    unanswering_form_fields: ClassVar[tuple[str, ...]] = ()
    answer_block_type: ClassVar[str] = ""
    may_have_several_answer_blocks: ClassVar[bool] = False
    gap_pattern: ClassVar[re.Pattern[str] | None] = None
    options_attribute: ClassVar[str] = ""
    responses_are_option_keys: ClassVar[bool] = False
    min_exam_options: ClassVar[int] = 0
    has_several_right_options: ClassVar[bool] = False
    has_option_boxes: ClassVar[bool] = True
    is_each_field_an_answer: ClassVar[bool] = False
    supports_partial_credit: ClassVar[bool] = False
    credit_rules: ClassVar[tuple[str, ...]] = ("off", "each")
    supports_weighted_options: ClassVar[bool] = False
    is_allowed_in_exams: ClassVar[bool] = True
    is_in_real_exam: ClassVar[bool] = False
    is_allowed_as_card: ClassVar[bool] = True
    is_in_scaffolded_topics: ClassVar[bool] = False
    needs_calculators: ClassVar[bool] = False

    # --- authoring ---

    def is_implied_by_block(self, block: Token, options: Sequence[ParsedOption]) -> bool:
        """Return whether a block of the body says that an item without `type` is of this type.

        `options` are the item's options, none of them ticked.
        """
        del block, options
        return False

    def is_implied_by_options(self, options: Sequence[ParsedOption]) -> bool:
        del options
        return False

    @abc.abstractmethod
    def parse_answer(self, authored: AuthoredItem) -> A:
        """Parse the answer; malformed parts are reported."""

    @abc.abstractmethod
    def report_answer_problems(self, answer: A, authored: AuthoredItem) -> None:
        """Report what is wrong with an authored answer, and go on; never raises."""

    def report_wording_problems(
        self, answer: A, stem: RichText, line: int, parse_context: ParseContext
    ) -> None:
        """Report problems of its wording together with the stem."""

    def right_answer_texts(self, answer: A) -> list[str]:
        """Return the right answers as text, which no hint may contain."""
        return [o.text for o in self.options_for_statistics(answer) if o.right]

    def answer_key_fingerprint_texts(self, answer: A) -> list[str]:
        """Return the texts that are hashed to notice a changed key; nobody reads them."""
        return self.right_answer_texts(answer)

    def options_for_statistics(self, answer: A) -> tuple[StatisticsOption, ...]:
        """Return the options for answer statistics, in authored order."""
        options = getattr(answer, self.options_attribute) if self.options_attribute else ()
        return tuple(StatisticsOption(o.key, o.text.plain, o.right, o.credit) for o in options)

    def rename_option_keys(self, answer: A, new_key_by_old_key: Mapping[str, str]) -> A:
        """Return the answer with the option keys of an earlier revision."""
        if not self.options_attribute:
            return answer
        options = tuple(
            dataclasses.replace(o, key=new_key_by_old_key.get(o.key, o.key))
            for o in getattr(answer, self.options_attribute)
        )
        changed: Any = dataclasses.replace(answer, **{self.options_attribute: options})  # type: ignore[type-var]
        return changed  # type: ignore[no-any-return]

    def has_enough_exam_options(self, answer: A) -> bool:
        """Return whether it has as many options as mock exams require."""
        return (
            not self.min_exam_options
            or len(getattr(answer, self.options_attribute)) >= self.min_exam_options
        )

    def guessable_position_of_only_right_option(self, answer: A) -> int | None:
        """Return the position of the only right option, if positions could give it away."""
        del answer
        return None

    def describe_missing_input(self, answer: A, raw: SubmittedFields, stem: RichText) -> str:
        """Return what is missing before practice takes a response; empty if nothing is.

        An exam takes it as it is, because its time may be over.
        """
        del answer, raw, stem
        return ""

    def describe_incomplete_response(self, answer: A, raw: SubmittedFields, stem: RichText) -> str:
        """Return how many of the parts of a response are there; empty if all are, or it has none."""
        del answer, raw, stem
        return ""

    # --- figures ---

    def figure_file_names(self, answer: A) -> tuple[str, ...]:
        """Return the names of the figures that it needs, and of optional ones."""
        del answer
        return ()

    def embed_figures(self, answer: A, figure_by_file_name: Mapping[str, SvgFigure]) -> A:
        del figure_by_file_name
        return answer

    # --- computed numbers ---

    def list_templates_outside_rich_texts(self, answer: A) -> list[str]:
        """Return the templates in addition to those in its texts."""
        del answer
        return []

    def option_comparison_microseconds(self, answer: A) -> float:
        """Return the cost of checking one combination, in microseconds."""
        del answer
        return 0.0

    def find_variant_faults(
        self, answer: A, stem: RichText, values: Mapping[str, Value]
    ) -> list[VariantFault]:
        """Return the problems of one combination; raises ExpressionError."""
        del stem
        self.fill_answer_placeholders(answer, values)
        return []

    def fill_answer_placeholders(self, answer: A, values: Mapping[str, Value]) -> A:
        """Return the answer with its templates filled; raises ExpressionError."""
        filled: A = expressions.replace_rich_texts_within(
            answer, lambda text: expressions.fill_placeholders_of_rich_text(text, values)
        )
        return filled

    def shuffle_options(self, answer: A, rng: random.Random) -> A:
        """Return the answer in the order that one attempt shows."""
        del rng
        return answer

    # --- the learner ---

    def build_template_data(self, answer: A, draft_fields: DraftFields) -> Any:
        """Return what its template needs besides the answer; `draft_fields` is the draft response."""
        del answer, draft_fields

    def apply_button_press(self, fields: DraftFields, pressed_button: str) -> DraftFields:
        """Return the form's values after one of its own buttons was pressed."""
        del pressed_button
        return fields

    def drop_untouched_fields_on_autosave(
        self, answer: A, raw: DraftFields, answered_mark: AnsweredMark
    ) -> DraftFields:
        """Return the response without what the learner did not touch, when an exam saves the form.

        `answered_mark` is empty if the learner did not say whether it is answered.
        """
        del answer, answered_mark
        return raw

    @abc.abstractmethod
    def grade(
        self, answer: A, raw: SubmittedFields, credit_rule: str
    ) -> GradeResult | UnreadableResponse:
        """Grade a response; one that cannot be parsed is `UnreadableResponse`."""

    def build_some_valid_response(self, answer: A) -> SubmittedFields:
        """Return any valid response, to render the solution by grading it."""
        del answer
        return {"answer": ["0"]}

    def result_column_titles(self, answer: A) -> ResultColumnTitles:
        del answer
        return ResultColumnTitles("", "")

    def calculator_url(self, answer: A, parsed_response: Mapping[str, Any]) -> str:
        """Return the URL of the calculator with the learner's response filled in."""
        del answer, parsed_response
        return ""

    def render_card_faces_below_stem(self, answer: A, render_gap: RenderGap) -> CardFacesHtml:
        """Return what the front shows below the stem, and the right answer for the back."""
        del answer, render_gap
        return CardFacesHtml("", "")

    def write_several_right_note(self, stem: RichText) -> str:
        """Return the card's note that several options are right; empty if the stem says so."""
        del stem
        return ""

    def collect_text_or_html_below_stem(self, answer: A) -> str:
        return self.render_card_faces_below_stem(answer, "({})".format).front

    # --- statistics and previews ---

    @abc.abstractmethod
    def sample_responses(self, answer: A) -> Iterator[LabeledResponse]:
        """Yield sample responses for the preview: the right one, each foreseen one, others."""

    def count_response_patterns(
        self, responses: Iterable[SubmittedResponse[A]]
    ) -> Mapping[str, Counter[str]]:
        """Return habits of learners for authors: by title, how often each was seen."""
        del responses
        return {}

    def compute_guess_score(self, answer: A, credit_rule: str) -> float:
        """Return the expected score (0..1) of a blind guess."""
        del answer, credit_rule
        return 0.0

    def compute_guess_percent(self, answer: A) -> float | None:
        """Return the expected percent of a blind guess; None if it is undefined."""
        del answer
        return None
