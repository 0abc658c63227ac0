"""A question in every state that a learner can bring it into. Pure."""

import dataclasses
from collections.abc import Mapping, Sequence

from app.questions import kinds
from app.questions.grading import grade
from app.questions.model import Variant
from app.questions.verdict import Raw, UnreadableResponse
from app.web.words import format_percent


@dataclasses.dataclass(frozen=True, slots=True)
class SampleResponse:
    """An answer that a learner may give, in words, and what grading says of it.

    `result` is right, partly, wrong, near or refused.
    """

    words: str
    raw: Raw
    result: str
    said: str


def states_of(variant: Variant) -> list[SampleResponse]:
    """The answers worth looking at, each once: the right one, each foreseen, others."""
    made: list[SampleResponse] = []
    seen: set[tuple[tuple[str, tuple[str, ...]], ...]] = set()
    for words, raw in kinds.type_of(variant).states(variant.answer):
        name = tuple(sorted((k, tuple(v)) for k, v in raw.items()))
        if name not in seen:
            seen.add(name)
            made.append(_judged(variant, words, raw))
    return made


def _judged(variant: Variant, words: str, raw: Raw) -> SampleResponse:
    verdict = grade(variant, raw)
    if isinstance(verdict, UnreadableResponse):
        return SampleResponse(words, raw, "refused", "refused")
    if verdict.near:
        return SampleResponse(words, raw, "near", "asked again")
    said = {"right": "right", "wrong": "not right"}.get(verdict.result, "")
    return SampleResponse(
        words, raw, verdict.result, said or f"{format_percent(verdict.score)} of the points"
    )


def typed(raw: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """A response as the pairs of an address."""
    return [(name, value) for name, values in raw.items() for value in values]
