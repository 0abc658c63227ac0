"""Base class of question types; the authored item; card faces."""

import abc
import dataclasses
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from markdown_it.token import Token

from app.markup import expressions, strict_yaml
from app.markup.expressions import Value
from app.markup.html_renderer import RenderContext
from app.markup.model import RichText, SvgFigure
from app.markup.problems import SourceFile
from app.markup.strict_yaml import YamlMapping
from app.questions.options import Choice, ParsedOption
from app.questions.result import GradeResult, Raw, UnreadableResponse


class CardFaces(NamedTuple):
    """The front and the back of a card, as safe HTML."""

    front: str
    back: str


def list_items(parts: Iterable[str]) -> str:
    """Render the parts as a list."""
    return "".join(f"<li>{part}</li>" for part in parts)


def paragraphs(parts: Iterable[str]) -> str:
    """Render the parts as paragraphs."""
    return "".join(f"<div>{part}</div>" for part in parts)


def titled_block(title: str, parts: list[str]) -> str:
    """Render the parts under a title; empty without parts."""
    if not parts:
        return ""
    return f'<div class="others"><p><b>{title}</b></p><ul>{list_items(parts)}</ul></div>'


def option_with_reason(choice: Choice) -> str:
    """Render an option with its feedback."""
    return f"{choice.text.html}{reason_html(choice.feedback)}"


def reason_html(feedback: RichText) -> str:
    """Render feedback, if there is any."""
    return f'<div class="why">{feedback.html}</div>' if feedback.html else ""


def block_html(text: RichText) -> str:
    """Render a text as a block, if there is any."""
    return f"<div>{text.html}</div>" if text.html else ""


@dataclasses.dataclass(frozen=True, slots=True)
class ItemComment:
    """The comment of an item: its fields and their positions."""

    id: str
    fields: YamlMapping
    line: int
    column: int

    def field_text(self, name: str) -> str:
        """Return the value of a key, empty if it is absent."""
        return strict_yaml.single_text(self.fields.values.get(name))

    def says_yes(self, name: str) -> bool:
        """Return whether a key that defaults to no is set to yes."""
        return self.field_text(name).lower() in {"yes", "true"}

    def place(self, name: str) -> tuple[int, int]:
        """Return the position of a key's value, or of the comment if the key is absent."""
        node = self.fields.values.get(name)
        return (node.line, node.column) if node else (self.line, self.column)


@dataclasses.dataclass(slots=True)
class ItemDraft:
    """An item as written: its heading, its comment and what follows them.

    `text` is all of it, `below` the part after its comment.
    """

    heading: Token
    comment: ItemComment
    body: list[Token]
    line: int
    level: int
    text: str
    broken: bool = False
    below: str = ""


@dataclasses.dataclass(slots=True)
class ItemParts:
    """The blocks of an item by their role.

    `block` is the list or table from which some types read their answer.
    """

    stem: list[Token]
    options: list[ParsedOption]
    block: list[Token]
    hints: list[list[Token]]
    explanation: list[Token]
    mistake: list[Token]
    list_line: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class AuthoredItem:
    """What a type reads its answer from. `computed`: numbers are drawn later."""

    draft: ItemDraft
    parts: ItemParts
    scope: RenderContext
    computed: bool = False

    @property
    def comment(self) -> ItemComment:
        return self.draft.comment

    @property
    def source_file(self) -> SourceFile:
        """Return the file, which collects problems."""
        return self.scope.source_file

    def determine_exam_use(self, file: bool) -> str:
        """Return whether mock exams draw it: “only” they do, “maybe”, or empty for never.

        `file` is whether mock exams draw from its file at all.
        """
        if self.comment.field_text("use").lower() == "exam":
            return "only"
        deeper = self.comment.field_text("level").lower() == "deeper"
        return "maybe" if file and not deeper else ""

    @property
    def line(self) -> int:
        """Return the line where the options begin, or that of the heading."""
        return self.parts.list_line or self.draft.line


A = TypeVar("A")
Typed = Mapping[str, Sequence[str]]
Gap = Callable[[str], str]
"""Draws a gap. It gets the hint as HTML, which may be empty."""
State = tuple[str, Raw]
"""A sample response: its description, and the form data."""


class CountedOption(NamedTuple):
    """An option in answer statistics: its key, its text, whether it is right.

    `credit` is its partial credit if it is not right.
    """

    key: str
    words: str
    right: bool
    credit: float = 0.0


class VariantFault(NamedTuple):
    """A problem in one combination of a computed question."""

    code: str
    message: str
    hint: str = ""


class QuestionType(abc.ABC, Generic[A]):
    """A question type, from Markdown to statistics.

    `name` is its `type` in the comment. `models` are the classes of its answer, the
    answer itself first. `keys` are its own keys of the comment; if there is a `telling_key`,
    only an item with it can be of this type without saying so. `block` is the token that
    opens the list or table with its answer, or `fence` and the name of a block; `repeated`
    whether there may be several, each with a quote below; `blank` the Markdown of a gap, if
    the answer is in the stem; `boxed` whether its options have boxes. `begins` is whether
    scaffolded topics contain one, `estimates` whether it needs a course with calculators.

    `template` has its macros `form` and `marks`, and `exam` if exams use another form.
    `fields` are the names of its form fields, or their prefixes up to a dot; `working` those
    that are no answer by themselves. `listed` is the field of the answer that lists keyed
    options, `chosen` whether a response names some of them, and `least` how many of them a
    question of a mock exam has. `independent` is whether each form field is an answer of its
    own. `in_parts` is whether it supports partial credit, `credits` by which rules, `weighed`
    whether single options may have partial credit, `of_exam` whether the real exam has the
    type. `in_exams` and `as_card` are whether it can be used in mock exams and as a card.
    """

    name: ClassVar[str]
    models: ClassVar[tuple[type, ...]]
    template: ClassVar[str]
    keys: ClassVar[tuple[str, ...]] = ()
    telling_key: ClassVar[str] = ""
    fields: ClassVar[tuple[str, ...]] = ("answer",)
    working: ClassVar[tuple[str, ...]] = ()
    block: ClassVar[str] = ""
    repeated: ClassVar[bool] = False
    blank: ClassVar[re.Pattern[str] | None] = None
    listed: ClassVar[str] = ""
    chosen: ClassVar[bool] = False
    least: ClassVar[int] = 0
    several: ClassVar[bool] = False
    boxed: ClassVar[bool] = True
    independent: ClassVar[bool] = False
    in_parts: ClassVar[bool] = False
    credits: ClassVar[tuple[str, ...]] = ("off", "each")
    weighed: ClassVar[bool] = False
    in_exams: ClassVar[bool] = True
    of_exam: ClassVar[bool] = False
    as_card: ClassVar[bool] = True
    begins: ClassVar[bool] = False
    estimates: ClassVar[bool] = False

    # --- authoring ---

    def recognizes_block(self, block: Token, options: Sequence[ParsedOption]) -> bool:
        """Return whether a block of the body says that an item without `type` is of this type.

        `options` are the item's options, none of them ticked.
        """
        del block, options
        return False

    def recognizes_options(self, options: Sequence[ParsedOption]) -> bool:
        """Return whether the options say it."""
        del options
        return False

    @abc.abstractmethod
    def parse(self, written: AuthoredItem) -> A:
        """Parse the answer; malformed parts are reported."""

    @abc.abstractmethod
    def check(self, answer: A, written: AuthoredItem, *, exam: bool) -> None:
        """Report problems of the answer. `exam` is whether a mock exam may draw it."""

    def check_words(self, answer: A, stem: RichText, line: int, source_file: SourceFile) -> None:
        """Report problems of its wording together with the stem."""

    def right_words(self, answer: A) -> list[str]:
        """Return the right answers as text, which no hint may contain."""
        return [o.words for o in self.options(answer) if o.right]

    def key_words(self, answer: A) -> list[str]:
        """Return the key as text; a changed key requires a review of the item."""
        return self.right_words(answer)

    def options(self, answer: A) -> tuple[CountedOption, ...]:
        """Return the options for answer statistics, in authored order."""
        del answer
        return ()

    def rekeyed(self, answer: A, names: Mapping[str, str]) -> A:
        """Return the answer with the option keys of an earlier revision."""
        if not self.listed:
            return answer
        options = tuple(
            dataclasses.replace(o, key=names.get(o.key, o.key))
            for o in getattr(answer, self.listed)
        )
        changed: Any = dataclasses.replace(answer, **{self.listed: options})  # type: ignore[type-var]
        return changed  # type: ignore[no-any-return]

    def enough(self, answer: A) -> bool:
        """Return whether it has as many options as mock exams require."""
        return not self.least or len(getattr(answer, self.listed)) >= self.least

    def position(self, answer: A) -> int | None:
        """Return the position of the only right option, if positions could give it away."""
        del answer
        return None

    def describe_missing_input(self, answer: A, raw: Raw, stem: RichText) -> str:
        """Return what is missing before practice takes a response; empty if nothing is.

        An exam takes it as it is, because its time may be over.
        """
        del answer, raw, stem
        return ""

    # --- figures ---

    def drawings(self, answer: A) -> tuple[str, ...]:
        """Return the names of the figures that it needs, and of optional ones."""
        del answer
        return ()

    def drawn(self, answer: A, figures: Mapping[str, SvgFigure]) -> A:
        """Return the answer with its figures, by file name."""
        del figures
        return answer

    # --- computed numbers ---

    def templates(self, answer: A) -> list[str]:
        """Return the templates in addition to those in its texts."""
        del answer
        return []

    def effort(self, answer: A) -> float:
        """Return the cost of checking one combination, in microseconds."""
        del answer
        return 0.0

    def faults(self, answer: A, stem: RichText, values: Mapping[str, Value]) -> list[VariantFault]:
        """Return the problems of one combination; raises ExpressionError."""
        del stem
        self.filled(answer, values)
        return []

    def filled(self, answer: A, values: Mapping[str, Value]) -> A:
        """Return the answer with its templates filled; raises ExpressionError."""
        made: A = expressions.map_texts(answer, lambda text: expressions.fill_text(text, values))
        return made

    def shuffled(self, answer: A, mixer: random.Random) -> A:
        """Return the answer in the order that one attempt shows."""
        del mixer
        return answer

    # --- the learner ---

    def shown(self, answer: A, typed: Typed) -> Any:
        """Return what its template needs besides the answer; `typed` is the draft response."""
        del answer, typed

    def moved(self, raw: Typed, move: str) -> Typed:
        """Return the form's values after one of its own buttons was pressed."""
        del move
        return raw

    def settled(self, answer: A, raw: Typed, said: str) -> Typed:
        """Return what counts as the response when an exam saves the form automatically.

        `said` is whether the learner marked it as answered: yes, no, or empty.
        """
        del answer, said
        return raw

    @abc.abstractmethod
    def grade(self, answer: A, raw: Raw, partial: str) -> GradeResult | UnreadableResponse:
        """Grade a response; one that cannot be parsed is `UnreadableResponse`."""

    def anything(self, answer: A) -> Raw:
        """Return any valid response, to render the solution by grading it."""
        del answer
        return {"answer": ["0"]}

    def columns(self, answer: A) -> tuple[str, str]:
        """Return the column titles of a result in rows: the part, and its right answer."""
        del answer
        return "", ""

    def calculator(self, answer: A, parsed: Mapping[str, Any]) -> str:
        """Return the URL of the calculator with the learner's response filled in."""
        del answer, parsed
        return ""

    def faces(self, answer: A, gap: Gap) -> CardFaces:
        """Return what a card shows below the stem, and its right answer."""
        del answer, gap
        return CardFaces("", "")

    def collect_text_below_stem(self, answer: A) -> str:
        """Return the text below the stem that is read before answering."""
        return self.faces(answer, "({})".format).front

    # --- statistics and previews ---

    @abc.abstractmethod
    def states(self, answer: A) -> Iterator[State]:
        """Yield sample responses for the preview: the right one, each foreseen one, others."""

    def tallies(self, responses: Iterable[tuple[A, Raw]]) -> Mapping[str, Counter[str]]:
        """Return what else learners did, for authors: a title, and how often each thing.

        `responses` are answers with what was submitted.
        """
        del responses
        return {}

    def guess_rate(self, answer: A, partial: str) -> float:
        """Return the expected score (0..1) of a blind guess."""
        del answer, partial
        return 0.0

    def guess_score(self, answer: A) -> float | None:
        """Return the expected percent of a blind guess; None if it is undefined."""
        del answer
        return None
