"""A question put to a learner: its variant, its token, and what is typed so far."""

import dataclasses
import secrets
from collections.abc import Mapping, Sequence

from app.content.model import Text
from app.content.templates import PLACEHOLDER
from app.estimator import registry
from app.estimator.units import UNITS
from app.questions.kinds.design.wording import described
from app.questions.model import (
    Choice,
    Choices,
    Cloze,
    Design,
    Match,
    Numeric,
    Order,
    Pair,
    Question,
    Short,
    Variant,
)
from app.questions.variants import draw, next_seed
from app.web.instruments import Field, fields_of

_LAST = 10**9
_UNITS = {
    "B": ("kB", "MB", "GB", "GiB", "TB", "TiB", "PB"),
    "B/s": ("MB/s", "Gbit/s", "GB/s", "TB/s"),
    "s": ("µs", "ms", "s", "min", "h", "days"),
    "W": ("W", "kW", "MW"),
    "Wh": ("Wh", "kWh", "MWh"),
    "FLOP": ("GFLOP", "TFLOP", "PFLOP", "EFLOP", "ZFLOP"),
    "FLOP/s": ("TFLOP/s", "PFLOP/s", "EFLOP/s"),
}
_FIELDS = {
    Choices: "quiz/_choices.html",
    Numeric: "quiz/_number.html",
    Short: "quiz/_words.html",
    Order: "quiz/_order.html",
    Match: "quiz/_match.html",
    Cloze: "quiz/_cloze.html",
    Design: "quiz/_design.html",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
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
    def fields(self) -> str:
        """The template of the fields in which the answer is given."""
        return _FIELDS[type(self.variant.answer)]

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

    @property
    def unit(self) -> str:
        """The unit in which a number is asked for; empty for a plain one."""
        answer = self.variant.answer
        if not isinstance(answer, Numeric):
            return ""
        return next((o.range.unit for o in answer.options if o.right and o.range), "")

    @property
    def units(self) -> tuple[str, ...]:
        """Units of that kind to choose from; none for plain numbers and counts."""
        unit = self.unit
        choices = _UNITS.get(UNITS.get(unit, (unit, 1.0))[0], ())
        return choices if unit in choices or not choices else (unit, *choices)

    @property
    def lefts(self) -> tuple[Pair, ...]:
        """The rows of a match question in the order displayed."""
        answer = self.variant.answer
        if not isinstance(answer, Match):
            return ()
        rows = {p.key: p for p in answer.pairs if p.left.plain or p.left.html}
        return tuple(rows[k] for k in answer.shown_left or rows if k in rows)

    @property
    def rights(self) -> tuple[Pair, ...]:
        """What the rows can be matched with, each once, in the order displayed."""
        answer = self.variant.answer
        if not isinstance(answer, Match):
            return ()
        cells = {p.answer: p for p in answer.pairs}
        return tuple(cells[a] for a in answer.shown_right or sorted(cells))

    @property
    def plan(self) -> tuple[Field, ...]:
        """The inputs of a design exercise that are left to the learner."""
        design = self.variant.answer
        entry = registry.find(design.estimate) if isinstance(design, Design) else None
        if entry is None or not isinstance(design, Design):
            return ()
        typed = {n: self.given(f"choose.{n}") for n in design.choose}
        typed = {**design.given, **{n: words for n, words in typed.items() if words}}
        fields = fields_of(entry, typed, None, (), id=f"q-{self.question.id}")
        open_ = {f.name: f for f in fields if f.name in design.choose}
        return tuple(
            dataclasses.replace(open_[n], name=f"choose.{n}")
            for n in design.choose
            if n in open_
        )

    @property
    def conditions(self) -> tuple[tuple[str, str], ...]:
        """What a plan has to meet: (what, how much)."""
        design = self.variant.answer
        return described(design) if isinstance(design, Design) else ()

    @property
    def arranged(self) -> tuple[tuple[Choice, str], ...]:
        """The items of an order question as they stand, each with its place."""
        answer = self.variant.answer
        if not isinstance(answer, Order):
            return ()
        items = {item.key: item for item in (*answer.steps, *answer.distractors)}
        keys = [k for k in answer.shown if k in items] or sorted(items)
        places = {
            key: self.given(f"place.{key}") if self.typed else str(number)
            for number, key in enumerate(keys, 1)
        }
        keys.sort(key=lambda key: _number(places[key]))
        return tuple((items[key], places[key]) for key in keys)


def ask(
    question: Question,
    *,
    key: str,
    before: Sequence[int] = (),
    context: str = "quiz",
    back: str = "",
) -> Asked:
    """Put a question to the learner of `key`.

    `before` are the seeds of earlier attempts, the newest first: a computed question
    shows other numbers than the last time, where it has others.
    """
    seed = seed_for(question, key, before)
    return Asked(draw(question, seed), new_token(), context, back)


def seed_for(question: Question, key: str, before: Sequence[int] = ()) -> int:
    """The seed of the next attempt; the same until the question was answered."""
    seed = next_seed(question, key, len(before))
    if before and question.computed:
        last = draw(question, before[0]).values
        if draw(question, seed).values == last:  # it was asked in an exam meanwhile
            return next_seed(question, key, len(before) + 1)
    return seed


def new_token() -> str:
    """A word that no other form has."""
    return secrets.token_urlsafe(12)


def first_words(text: Text, most: int = 90) -> str:
    """The beginning of a text, cut at a word, for lists and titles.

    Numbers that are drawn for each attempt are left open.
    """
    words = " ".join(PLACEHOLDER.sub("…", text.plain).split())
    if len(words) <= most:
        return words
    return words[: words.rfind(" ", 0, most)] + "…"


def _number(place: str) -> int:
    return int(place) if place.isascii() and place.isdigit() else _LAST
