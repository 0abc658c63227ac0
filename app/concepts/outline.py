"""The course as a list: domains, their objectives, and the pages for each."""

import dataclasses

from app.content.live.library import Library
from app.content.model import Domain, Objective, Topic


@dataclasses.dataclass(frozen=True, slots=True)
class OutlineObjective:
    """An objective and the pages that serve it, in reading order.

    Each page stands at one objective, the first that it names; at others it is `also`.
    """

    objective: Objective
    topics: tuple[Topic, ...]
    also: tuple[Topic, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class OutlineDomain:
    """A domain and its objectives."""

    domain: Domain
    goals: tuple[OutlineObjective, ...]


def outline(library: Library) -> tuple[OutlineDomain, ...]:
    """Every objective of the syllabus with its pages."""
    ordered = [library.topics[s] for s in library.syllabus.topics if s in library.topics]
    ordered += [t for s, t in library.topics.items() if t not in ordered]
    return tuple(
        OutlineDomain(
            domain,
            tuple(
                OutlineObjective(
                    o,
                    tuple(t for t in ordered if o.number in t.objectives[:1]),
                    tuple(t for t in ordered if o.number in t.objectives[1:]),
                )
                for o in domain.objectives
            ),
        )
        for domain in library.syllabus.domains
    )
