"""What an edit changed: the statistics of a question by its wordings. Pure."""

import dataclasses
import datetime as dt
from collections.abc import Iterable, Mapping, Sequence

from app.authoring.mending import LETTERS, letters_of
from app.authoring.resampling import change
from app.authoring.sameness import Stands
from app.authoring.statistics import ItemStatistics
from app.authoring.store import FirstAttempt, SeenWording
from app.questions import kinds
from app.questions.model import Question, Variant


@dataclasses.dataclass(frozen=True, slots=True)
class WordingStatistics:
    """One wording with its statistics.

    `step` is (difference, low, high) in points of facility against the wording before
    it, None while either has too few answers.
    """

    revision: str
    since: dt.datetime | None
    now: bool
    found: ItemStatistics | None
    step: tuple[float, float, float] | None


@dataclasses.dataclass(frozen=True, slots=True)
class OptionRow:
    """An option with those who chose it: how many, what share, how they do else."""

    key: str
    letter: str
    words: str
    right: bool
    count: int
    share: float
    rest: float | None
    credit: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class VariantRow:
    """A variant of a computed question: its numbers, right and foreseen answers."""

    seed: int
    values: tuple[tuple[str, str], ...]
    right: tuple[str, ...]
    wrong: tuple[str, ...]


def editions(
    question: Question,
    known: Sequence[SeenWording],
    answers: Sequence[FirstAttempt],
    found: Mapping[tuple[str, str], ItemStatistics],
) -> list[WordingStatistics]:
    """The wordings of a question, the oldest first; the one of now is always there.

    `answers` are those to the question, in whatever wording.
    """
    since = {w.revision: w.since for w in known}
    answered = [revision for item, revision in found if item == question.id]
    order = list(dict.fromkeys([*since, *answered, question.revision]))
    marks = {revision: [a.score for a in answers if a.revision == revision] for revision in order}
    made = []
    for place, revision in enumerate(order):
        before = marks[order[place - 1]] if place else []
        made.append(
            WordingStatistics(
                revision,
                since.get(revision),
                revision == question.revision,
                found.get((question.id, revision)),
                change(before, marks[revision]),
            )
        )
    return made


def one_of_each(
    question: Question, known: Iterable[SeenWording], same: Stands
) -> list[SeenWording]:
    """The wordings that differ in what they ask, each since its first form."""
    found: dict[str, SeenWording] = {}
    for one in known:
        revision = same.get((question.id, one.revision), one.revision)
        found.setdefault(revision, dataclasses.replace(one, revision=revision))
    return list(found.values())


def option_rows(question: Question, found: ItemStatistics | None) -> list[OptionRow]:
    """Every option of a choice in authored order; none for other types."""
    kind = kinds.type_of(question)
    if not kind.chosen:
        return []
    letters = letters_of(question)
    taken = {o.key: o for o in found.options} if found else {}
    return [
        OptionRow(
            option.key,
            letters.get(option.key, ""),
            option.words,
            option.right,
            taken[option.key].count if option.key in taken else 0,
            taken[option.key].share if option.key in taken else 0.0,
            taken[option.key].rest if option.key in taken else None,
            option.credit,
        )
        for option in kind.options(question.answer)
    ]


def seen_as(variant: Variant) -> dict[str, str]:
    """The letter of each option as it is shown to whoever has this variant."""
    kind = kinds.type_of(variant)
    keys = [option.key for option in kind.options(variant.answer)]
    return dict(zip(keys, LETTERS, strict=False)) if kind.chosen else {}


def sample(variant: Variant) -> VariantRow:
    """A variant as a row of the table of all variants."""
    right, wrong = _sides(variant)
    values = tuple((name, _shown(value)) for name, value in variant.values.items())
    return VariantRow(variant.seed, values, right, wrong)


def _sides(variant: Variant) -> tuple[tuple[str, ...], tuple[str, ...]]:
    options = kinds.type_of(variant).options(variant.answer)
    return (
        tuple(o.words for o in options if o.right),
        tuple(o.words for o in options if not o.right),
    )


def _shown(value: str | float) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,.10g}"
