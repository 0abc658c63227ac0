"""A question in every state that a learner can bring it into. Pure."""

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from app.questions.model import (
    Choices,
    Cloze,
    Design,
    Match,
    Numeric,
    Order,
    Pair,
    Short,
    Variant,
)
from app.quiz.grading import Raw, Unreadable, grade
from app.web.asking import Asked
from app.web.words import percent_of

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_TOLERANCE = re.compile(r"\s*(?:±|\+-|\+/-|\.\.|sig\b).*", re.DOTALL)
_OTHER_UNIT = "kB"
Typed = dict[str, Sequence[str]]
Answer = tuple[str, Typed]  # words, response


@dataclasses.dataclass(frozen=True, slots=True)
class State:
    """An answer that a learner may give, in words, and what grading says of it.

    `result` is right, partly, wrong, near or refused.
    """

    words: str
    raw: Raw
    result: str
    said: str


def states_of(variant: Variant) -> list[State]:
    """The answers worth looking at, each once: the right one, each foreseen, others."""
    made: list[State] = []
    seen: set[tuple[tuple[str, tuple[str, ...]], ...]] = set()
    for words, raw in _answers(variant):
        name = tuple(sorted((k, tuple(v)) for k, v in raw.items()))
        if name not in seen:
            seen.add(name)
            made.append(_judged(variant, words, raw))
    return made


def _judged(variant: Variant, words: str, raw: Raw) -> State:
    verdict = grade(variant, raw)
    if isinstance(verdict, Unreadable):
        return State(words, raw, "refused", "refused")
    if verdict.near:
        return State(words, raw, "near", "asked again")
    said = {"right": "right", "wrong": "not right"}.get(verdict.result, "")
    return State(
        words, raw, verdict.result, said or f"{percent_of(verdict.score)} of the points"
    )


def _answers(variant: Variant) -> Iterator[Answer]:
    answer = variant.answer
    if isinstance(answer, Design):
        fields = Asked(variant, "").plan
        yield "The plan as it stands", {f.name: [f.value] for f in fields}
    else:
        yield from _WAYS[type(answer)](answer)


def _choosing(answer: Choices) -> Iterator[Answer]:
    right = [o.key for o in answer.options if o.right]
    if answer.kind == "multiple":
        yield "All that are right", {"answer": right}
        for option in answer.options:
            words = f"Only “{option.text.plain}”"
            yield words, {"answer": [option.key]}
        yield "Everything", {"answer": [o.key for o in answer.options]}
        return
    for option in sorted(answer.options, key=lambda o: not o.right):
        yield option.text.plain, {"answer": [option.key]}


def _counting(answer: Numeric) -> Iterator[Answer]:
    right: list[str] = []
    for option in sorted(answer.options, key=lambda o: not o.right):
        number = _TOLERANCE.sub("", option.template).strip()
        if option.right:
            right.append(number)
        yield number, {"answer": [number]}
    if right:
        number, _, unit = right[0].partition(" ")
        if unit:
            other = _OTHER_UNIT if unit != _OTHER_UNIT else "TB"
            yield f"{number} {other}", {"answer": [f"{number} {other}"]}
    yield "Another number", {"answer": ["987654321"]}
    yield "What is no number", {"answer": ["many"]}


def _wording(answer: Short) -> Iterator[Answer]:
    for option in answer.options:
        yield f"“{option.answer}”", {"answer": [option.answer]}
    yield "Something else", {"answer": ["something else"]}


def _filling(answer: Cloze) -> Iterator[Answer]:
    right = {f"blank.{b.key}": [b.answers[0]] for b in answer.blanks if b.answers}
    yield "Every gap right", dict(right)
    for number, name in enumerate(right, 1):
        if len(right) > 1:
            yield f"Gap {number} not right", {**right, name: ["something else"]}
    yield "No gap right", {name: ["something else"] for name in right}


def _ordering(answer: Order) -> Iterator[Answer]:
    keys = [step.key for step in answer.steps]
    extra: Typed = {f"place.{d.key}": [""] for d in answer.distractors}
    swapped = [keys[1], keys[0], *keys[2:]]
    last = len(keys) + 1
    yield "In the right order", {**_placed(keys), **extra}
    yield "The first two swapped", {**_placed(swapped), **extra}
    yield "Backwards", {**_placed(keys[::-1]), **extra}
    for number, distractor in enumerate(answer.distractors):
        used = {**extra, f"place.{distractor.key}": [str(last)]}
        words = "With a step that does not belong"
        yield (
            f"{words}{f' ({number + 1})' if number else ''}",
            {**_placed(keys), **used},
        )


def _placed(keys: Sequence[str]) -> Typed:
    return {f"place.{key}": [str(place)] for place, key in enumerate(keys, 1)}


def _matching(answer: Match) -> Iterator[Answer]:
    rows = [p for p in answer.pairs if p.left.html]
    answers = [p.answer for p in rows]
    turned = answers[1:] + answers[:1]
    decoy = [p.answer for p in answer.pairs if not p.left.html]
    yield "Every row right", _paired(rows, answers)
    yield "The first row only", _paired(rows[:1], answers)
    yield "Each row one off", _paired(rows, turned)
    if decoy:
        yield "A decoy in the first row", _paired(rows, [decoy[0], *answers[1:]])


def _paired(rows: Sequence[Pair], answers: Sequence[str]) -> Typed:
    return {f"pair.{row.key}": [a] for row, a in zip(rows, answers, strict=False)}


_WAYS: dict[type, Callable[[Any], Iterator[Answer]]] = {
    Choices: _choosing,
    Numeric: _counting,
    Short: _wording,
    Cloze: _filling,
    Order: _ordering,
    Match: _matching,
}


def typed(raw: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """A response as the pairs of an address."""
    return [(name, value) for name, values in raw.items() for value in values]
