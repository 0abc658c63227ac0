"""Where a learner stands, objective by objective."""

import dataclasses
from collections.abc import Collection, Iterable, Mapping

from app.content.library import Library
from app.content.model import Domain, Objective, Topic
from app.progress.mastery.evidence import Evidence


@dataclasses.dataclass(frozen=True, slots=True)
class Record:
    """What is kept about a learner, as the rules read it.

    `firsts` are scores (0..1) of first answers by question; `known` the cards that
    have left their learning steps; `read` the sections read, by topic.
    """

    firsts: Mapping[str, float]
    known: Collection[str]
    read: Mapping[str, Collection[str]]


@dataclasses.dataclass(frozen=True, slots=True)
class Pages:
    """Sections of the pages of an objective: read, and all."""

    read: int
    all: int


@dataclasses.dataclass(frozen=True, slots=True)
class Standing:
    """One objective: the evidence of answers, cards known, sections read."""

    objective: Objective
    topics: tuple[Topic, ...]
    evidence: Evidence
    questions: int
    cards_known: int
    cards: int
    pages: Pages

    @property
    def started(self) -> bool:
        """Whether anything was done for this objective."""
        return bool(self.evidence.answers or self.cards_known or self.pages.read)


@dataclasses.dataclass(frozen=True, slots=True)
class DomainStanding:
    """A domain with its objectives."""

    domain: Domain
    standings: tuple[Standing, ...]

    @property
    def evidence(self) -> Evidence:
        """All first answers in this domain."""
        return sum((s.evidence for s in self.standings), Evidence())


def standings(library: Library, record: Record) -> tuple[DomainStanding, ...]:
    """Every objective of the syllabus, in its order.

    A question counts for each objective that it names; what the course no longer
    holds does not count.
    """
    shelf = _Shelf(library)
    return tuple(
        DomainStanding(
            domain, tuple(_standing(o, shelf, record) for o in domain.objectives)
        )
        for domain in library.syllabus.domains
    )


class _Shelf:
    """The course turned around: items by objective."""

    def __init__(self, library: Library) -> None:
        self.questions = _by_objective(
            (q.id, q.objectives) for q in library.questions.values()
        )
        self.cards = _by_objective((c.id, c.objectives) for c in library.cards.values())
        order = [s for s in library.syllabus.topics if s in library.topics]
        self.topics = _by_objective(
            (slug, library.topics[slug].objectives)
            for slug in dict.fromkeys([*order, *library.topics])
        )
        self.topic = library.topics


def _by_objective(
    items: Iterable[tuple[str, Iterable[str]]],
) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, objectives in items:
        for number in objectives:
            found.setdefault(number, []).append(name)
    return found


def _standing(objective: Objective, shelf: _Shelf, record: Record) -> Standing:
    number = objective.number
    questions = shelf.questions.get(number, [])
    cards = shelf.cards.get(number, [])
    topics = tuple(shelf.topic[slug] for slug in shelf.topics.get(number, []))
    scores = [record.firsts[q] for q in questions if q in record.firsts]
    return Standing(
        objective=objective,
        topics=topics,
        evidence=Evidence(len(scores), sum(scores)),
        questions=len(questions),
        cards_known=sum(card in record.known for card in cards),
        cards=len(cards),
        pages=_pages(topics, record),
    )


def anchors(topic: Topic) -> tuple[str, ...]:
    """What of a page can be marked as read: its headed sections, or the whole."""
    return tuple(s.anchor for s in topic.sections if s.anchor) or ("",)


def _pages(topics: Iterable[Topic], record: Record) -> Pages:
    read = whole = 0
    for topic in topics:
        done = record.read.get(topic.slug, ())
        names = anchors(topic)
        read += sum(name in done for name in names)
        whole += len(names)
    return Pages(read, whole)
