"""Which objectives of the exam are ready, begun, or not started."""

import dataclasses
from collections.abc import Collection
from typing import Literal

from app.content.library import Library
from app.markup.model import Domain, Objective
from app.study_plan.score import ScoreEstimate

ObjectiveState = Literal["ready", "begun", "new"]


@dataclasses.dataclass(frozen=True, slots=True)
class ObjectiveProgress:
    """An objective with its state. `chance` of a right answer is 0 to 1, None if it isn't begun.

    `page` is the address of its first unread page, or of its first page if all are read.
    """

    objective: Objective
    state: ObjectiveState
    chance: float | None
    page: str


@dataclasses.dataclass(frozen=True, slots=True)
class DomainProgress:
    """A domain and its objectives, in the order of the syllabus."""

    domain: Domain
    objectives: tuple[ObjectiveProgress, ...]

    def count(self, state: ObjectiveState) -> int:
        return sum(one.state == state for one in self.objectives)

    @property
    def width(self) -> int:
        """The share of the exam in steps of 5%, which the style sheet turns into a width."""
        return max(5, round(self.domain.weight * 20) * 5)


def domain_progress(
    library: Library,
    ready: Collection[str],
    estimate: ScoreEstimate | None,
    opened: Collection[str],
    read: Collection[str],
) -> tuple[DomainProgress, ...]:
    """Return all domains with their objectives.

    `ready` are the objectives that were ready once, `opened` and `read` the pages that are begun
    and those read to the end.
    """
    return tuple(
        DomainProgress(
            domain,
            tuple(
                _objective_progress(library, objective, ready, estimate, opened, read)
                for objective in domain.objectives
            ),
        )
        for domain in library.syllabus.domains
    )


def _objective_progress(
    library: Library,
    objective: Objective,
    ready: Collection[str],
    estimate: ScoreEstimate | None,
    opened: Collection[str],
    read: Collection[str],
) -> ObjectiveProgress:
    topics = (library.topics.get(slug) for slug in library.syllabus.topics)
    pages = [topic.slug for topic in topics if topic and objective.number in topic.objectives]
    known = estimate.objectives.get(objective.number) if estimate else None
    state: ObjectiveState = "new"
    if objective.number in ready:
        state = "ready"
    elif (known and known.answers) or any(page in opened for page in pages):
        state = "begun"
    page = next((page for page in pages if page not in read), pages[0] if pages else "")
    return ObjectiveProgress(
        objective=objective,
        state=state,
        chance=known.chance if known and state != "new" else None,
        page=f"/concepts/{page}" if page else "",
    )
