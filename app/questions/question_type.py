"""Base class of question types; an item as authored; card faces."""

import abc
import dataclasses
import random
import re
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
    """What is asked, and what stands behind it, as HTML that is safe on a page."""

    front: str
    back: str


def items(parts: Iterable[str]) -> str:
    """The parts as items of a list."""
    return "".join(f"<li>{part}</li>" for part in parts)


def paragraphs(parts: Iterable[str]) -> str:
    """The parts below each other."""
    return "".join(f"<div>{part}</div>" for part in parts)


def titled_block(title: str, parts: list[str]) -> str:
    """The parts under a title; nothing without parts."""
    if not parts:
        return ""
    return f'<div class="others"><p><b>{title}</b></p><ul>{items(parts)}</ul></div>'


def with_why(choice: Choice) -> str:
    """An option with what is said to who takes it."""
    return f"{choice.text.html}{why(choice.feedback)}"


def why(feedback: RichText) -> str:
    """A reason, where there is one."""
    return f'<div class="why">{feedback.html}</div>' if feedback.html else ""


def block(text: RichText) -> str:
    """A text below others, where there is one."""
    return f"<div>{text.html}</div>" if text.html else ""


@dataclasses.dataclass(frozen=True, slots=True)
class ItemComment:
    """The comment of an item: its fields and where they stand."""

    id: str
    fields: YamlMapping
    line: int
    column: int

    def word(self, name: str) -> str:
        """The text of one key, empty when it is absent."""
        return strict_yaml.single_text(self.fields.values.get(name))

    def says_yes(self, name: str) -> bool:
        """Whether a key that is no by itself is set to yes."""
        return self.word(name).lower() in {"yes", "true"}

    def place(self, name: str) -> tuple[int, int]:
        """Where the value of a key stands, else where the comment begins."""
        node = self.fields.values.get(name)
        return (node.line, node.column) if node else (self.line, self.column)


@dataclasses.dataclass(slots=True)
class ItemDraft:
    """An item as written: its heading, its comment and what follows them.

    `text` is all of it, `below` what stands below its comment.
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
    """The blocks of an item by what they mean.

    `block` is the list or table that some kinds take as their answer.
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
    """What a kind reads its answer from; `computed`: its numbers are drawn later."""

    draft: ItemDraft
    parts: ItemParts
    scope: RenderContext
    computed: bool = False

    @property
    def comment(self) -> ItemComment:
        """The comment of the item."""
        return self.draft.comment

    @property
    def sheet(self) -> SourceFile:
        """The file, where problems are reported."""
        return self.scope.sheet

    def drawn_from(self, file: bool) -> str:
        """How mock exams draw it: “only” they do, “maybe”, or empty for never.

        `file` is whether they draw from its file at all.
        """
        if self.comment.word("use").lower() == "exam":
            return "only"
        deeper = self.comment.word("level").lower() == "deeper"
        return "maybe" if file and not deeper else ""

    @property
    def line(self) -> int:
        """Where the options begin, else the heading."""
        return self.parts.list_line or self.draft.line


A = TypeVar("A")
Typed = Mapping[str, Sequence[str]]
Gap = Callable[[str], str]
"""How a gap is drawn; it gets the hint as HTML, which may be empty."""
State = tuple[str, Raw]
"""An answer worth looking at: in words, and as a form would send it."""


class CountedOption(NamedTuple):
    """An option whose answers are counted: its key, its words, whether it is right.

    `credit` is the part of the mark that it is worth where it is not.
    """

    key: str
    words: str
    right: bool
    credit: float = 0.0


class VariantFault(NamedTuple):
    """What is wrong with one combination of a computed question."""

    code: str
    message: str
    hint: str = ""


class QuestionType(abc.ABC, Generic[A]):
    """One kind of question, from the Markdown to the statistics.

    `name` is its type in the comment. `models` are the values that its answer part
    consists of, the answer itself first. `keys` are its own keys of the comment,
    `block` the token that opens the list or table it takes as its answer, `blank` a
    gap as it stands in the stem, where the answer is the stem's text, `boxed` whether
    it reads options in boxes. `begins` is whether a new topic has one, `estimates`
    whether it needs a course with calculators.
    `template` has its macros `form` and `marks`, and `exam` where its form is another
    one there; `fields` are the names that the form sends, or their beginnings up to a
    dot. `listed` is the field of the answer with the options of which each has a key,
    `chosen` whether an answer names some of these, and `least` how many of them a
    question of a mock exam has. `independent` is whether each field of its form is an
    answer of its own. `in_parts` is whether a part of the answer can count,
    `credits` by which rules, `weighed` whether an option may be worth a part of the
    mark, `of_exam` whether the real exam has the kind. What cannot
    stand in exams or come back as a card says so.
    """

    name: ClassVar[str]
    models: ClassVar[tuple[type, ...]]
    template: ClassVar[str]
    keys: ClassVar[tuple[str, ...]] = ()
    fields: ClassVar[tuple[str, ...]] = ("answer",)
    block: ClassVar[str] = ""
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
    verb: ClassVar[str] = "answered"
    begins: ClassVar[bool] = False
    estimates: ClassVar[bool] = False

    # --- the author ---

    def told_by(self, block: Token, options: Sequence[ParsedOption]) -> str:
        """What in the body tells it where no type is said, in words; empty: nothing.

        `options` are those that the item has, none of them ticked.
        """
        del block, options
        return ""

    def told_by_options(self, options: Sequence[ParsedOption]) -> str:
        """What the options of an item tell that says no type, in words."""
        del options
        return ""

    @abc.abstractmethod
    def parse(self, written: AuthoredItem) -> A:
        """The answer part as it is written; what is malformed is reported."""

    @abc.abstractmethod
    def check(self, answer: A, written: AuthoredItem, *, exam: bool) -> None:
        """Report what is wrong with it; `exam`: it can stand in a mock exam."""

    def check_words(self, answer: A, stem: RichText, line: int, sheet: SourceFile) -> None:
        """Report what is wrong with its words beside the stem."""

    def right_words(self, answer: A) -> list[str]:
        """The right answers in words, which no hint may give away."""
        return [o.words for o in self.options(answer) if o.right]

    def key_words(self, answer: A) -> list[str]:
        """What is right, in words: another key asks for a review of the item."""
        return self.right_words(answer)

    def options(self, answer: A) -> tuple[CountedOption, ...]:
        """The options whose answers are counted, in authored order."""
        del answer
        return ()

    def rekeyed(self, answer: A, names: Mapping[str, str]) -> A:
        """The answer with the keys under which its options were counted before."""
        if not self.listed:
            return answer
        options = tuple(
            dataclasses.replace(o, key=names.get(o.key, o.key))
            for o in getattr(answer, self.listed)
        )
        changed: Any = dataclasses.replace(answer, **{self.listed: options})  # type: ignore[type-var]
        return changed  # type: ignore[no-any-return]

    def enough(self, answer: A) -> bool:
        """Whether there are as many options as a mock exam asks for."""
        return not self.least or len(getattr(answer, self.listed)) >= self.least

    def position(self, answer: A) -> int | None:
        """The place of the one right option, where a place can give it away."""
        del answer
        return None

    # --- what lies beside it ---

    def drawings(self, answer: A) -> tuple[str, ...]:
        """The drawings that it needs, and those it takes where they are."""
        del answer
        return ()

    def drawn(self, answer: A, found: Mapping[str, SvgFigure]) -> A:
        """The answer with its drawings, by the names of their files."""
        del found
        return answer

    # --- numbers that are drawn ---

    def templates(self, answer: A) -> list[str]:
        """Templates beside its texts."""
        del answer
        return []

    def effort(self, answer: A) -> float:
        """What it costs to look at one combination, in microseconds."""
        del answer
        return 0.0

    def faults(self, answer: A, stem: RichText, values: Mapping[str, Value]) -> list[VariantFault]:
        """What is wrong with one combination; raises BadExpression."""
        del stem
        self.filled(answer, values)
        return []

    def filled(self, answer: A, values: Mapping[str, Value]) -> A:
        """The answer with its templates filled; raises BadExpression."""
        made: A = expressions.map_texts(answer, lambda text: expressions.fill_text(text, values))
        return made

    def shuffled(self, answer: A, mixer: random.Random) -> A:
        """The answer in the order in which one attempt shows it."""
        del mixer
        return answer

    # --- the learner ---

    def shown(self, answer: A, typed: Typed) -> Any:
        """What its template gets beside the answer; `typed` is what was sent so far."""
        del answer, typed

    def moved(self, raw: Typed, move: str) -> Typed:
        """What stands in the form after a button of it was pressed."""
        del move
        return raw

    def settled(self, answer: A, raw: Typed, said: str) -> Typed:
        """What counts of a form that an exam saves without being asked to.

        `said` is whether the learner calls it an answer: yes, no, or empty.
        """
        del answer, said
        return raw

    @abc.abstractmethod
    def grade(self, answer: A, raw: Raw, partial: str) -> GradeResult | UnreadableResponse:
        """Judge a response; what cannot be understood is `UnreadableResponse`."""

    def anything(self, answer: A) -> Raw:
        """Some response that can be read, so that grading lays out the solution."""
        del answer
        return {"answer": ["0"]}

    def columns(self, answer: A) -> tuple[str, str]:
        """The heads of a verdict in rows: what was asked, what belongs there."""
        del answer
        return "", ""

    def calculator(self, answer: A, parsed: Mapping[str, Any]) -> str:
        """The address of the calculator with what was answered."""
        del answer, parsed
        return ""

    def faces(self, answer: A, gap: Gap) -> CardFaces:
        """What it shows below its stem on a card, and its right answer."""
        del answer, gap
        return CardFaces("", "")

    def read_before(self, answer: A) -> str:
        """What is read below the stem before it is answered, in whatever order."""
        return self.faces(answer, "({})".format).front

    # --- the bench ---

    @abc.abstractmethod
    def states(self, answer: A) -> Iterator[State]:
        """The answers worth looking at: the right one, each foreseen, others."""

    def guess_rate(self, answer: A, partial: str) -> float:
        """The mean score (0..1) of an answer that is chosen blindly."""
        del answer, partial
        return 0.0

    def guess_score(self, answer: A) -> float | None:
        """The percent that blind guessing earns; None where it is undefined."""
        del answer
        return None
