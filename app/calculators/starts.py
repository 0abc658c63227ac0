"""Where people start: the list of calculators, and questions with ready inputs."""

import dataclasses
import functools
from collections.abc import Mapping

from app.estimator import registry
from app.estimator.inputs import declared
from app.estimator.registry import Entry
from app.web.instruments import Course, catalogued
from app.web.readings import ShownFigure, address, show_figure


@dataclasses.dataclass(frozen=True, slots=True)
class Listed:
    """A calculator in the list, with its answer for the inputs it starts with."""

    number: int
    name: str
    title: str
    summary: str
    example: str
    figure: ShownFigure | None


@dataclasses.dataclass(frozen=True, slots=True)
class Start:
    """A question people come with: the estimate that answers it, and its inputs."""

    question: str
    example: str
    estimate: str
    typed: Mapping[str, str]

    @property
    def address(self) -> str:
        """The calculator, filled in."""
        return address(
            self.estimate, "&".join(f"{k}={v}" for k, v in self.typed.items())
        )


STARTS: tuple[Start, ...] = ()


def groups() -> dict[str, list[Listed]]:
    """All calculators by group, in the order of the registry."""
    found: dict[str, list[Listed]] = {}
    for number, entry in enumerate(registry.entries(), 1):
        found.setdefault(entry.group, []).append(_listed(entry, number))
    return found


def explained(entry: Entry, course: Course) -> dict[str, str]:
    """The pages that teach this calculator and its inputs: slug and title."""
    slugs = [entry.topic, *(i.topic for i in declared(entry.inputs).values())]
    return {s: course.topics[s] for s in slugs if s in course.topics}


@functools.cache
def _listed(entry: Entry, number: int) -> Listed:
    inputs = entry.inputs()
    figures = entry.compute(inputs).figures
    first = next((f for f in figures if f.primary), figures[0] if figures else None)
    return Listed(
        number=number,
        name=entry.name,
        title=entry.title,
        summary=entry.summary,
        example=_example(entry),
        figure=show_figure(first) if first else None,
    )


def _example(entry: Entry) -> str:
    """The catalogue names among the inputs that a calculator starts with."""
    inputs = entry.inputs()
    words = []
    for name, field in declared(entry.inputs).items():
        if field.kind in {"model", "gpu", "system", "network"} and not field.advanced:
            value = getattr(inputs, name)
            names = dict(c for group in catalogued(field.kind) for c in group.choices)
            words.append(names.get(value, value))
    return ", ".join(w for w in words if w)
