"""What a practice run showed: the topics to read, the strong ones, and what was missed."""

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence

from app.content.blueprint import domain_by_objective
from app.content.library import Library

_STEPS = 3


@dataclasses.dataclass(frozen=True, slots=True)
class TopicResult:
    """How a topic went: `right` of `count` questions were fully right."""

    slug: str
    title: str
    minutes: float
    right: int
    count: int

    @property
    def missed(self) -> int:
        return self.count - self.right


@dataclasses.dataclass(frozen=True, slots=True)
class DomainResult:
    """How a domain went; `weight` is its share of the exam."""

    title: str
    weight: float
    right: int
    count: int

    @property
    def cost(self) -> float:
        """The share of the exam that is lost if all of the domain goes like this."""
        return self.weight * (self.count - self.right) / self.count


@dataclasses.dataclass(frozen=True, slots=True)
class MissedQuestion:
    """A question that was not fully right, with its place in the run or paper, from 1."""

    place: int
    topic: str


@dataclasses.dataclass(frozen=True, slots=True)
class RunSummary:
    """`to_read` are the topics to read next, at most three; `strong` those without a miss.

    `missed` is in the order to learn it. `costly` is the domain whose misses cost most in the
    exam, None if nothing was missed.
    """

    to_read: tuple[TopicResult, ...]
    strong: tuple[TopicResult, ...]
    missed: tuple[MissedQuestion, ...]
    costly: DomainResult | None = None


def summarize_run(
    library: Library, scores: Mapping[str, float], items: list[str], listed: Sequence[str] = ()
) -> RunSummary:
    """Return the summary; `scores` has the answered questions, `items` all in their order.

    Of the topics to read, those `listed` for today come first, in that order.
    """
    ordered = learning_order(library, scores)
    topics = [
        _topic_result(library, slug, [scores[item] for item in group])
        for slug, group in itertools.groupby(ordered, lambda item: library.questions[item].topic)
    ]
    missed = [item for item in ordered if scores[item] < 1]
    order = {slug: place for place, slug in enumerate(listed)}
    weakest = sorted(
        (topic for topic in topics if topic.missed),
        key=lambda topic: (order.get(topic.slug, len(order)), -topic.missed),
    )
    return RunSummary(
        to_read=tuple(weakest[:_STEPS]),
        strong=tuple(topic for topic in topics if not topic.missed),
        missed=tuple(
            MissedQuestion(
                items.index(item) + 1,
                library.topics[library.questions[item].topic].title,
            )
            for item in missed
        ),
        costly=_costliest_domain(library, scores),
    )


def _costliest_domain(library: Library, scores: Mapping[str, float]) -> DomainResult | None:
    domain_of = domain_by_objective(library)
    results = []
    for domain in library.syllabus.domains:
        mine = [
            score
            for item, score in scores.items()
            if library.questions[item].home(domain_of) == domain.number
        ]
        if mine:
            right = sum(score >= 1 for score in mine)
            results.append(DomainResult(domain.title, domain.weight, right, len(mine)))
    worst = max(results, key=lambda result: result.cost, default=None)
    return worst if worst and worst.cost else None


def learning_order(library: Library, items: Iterable[str]) -> list[str]:
    """Return the questions in the order in which the course teaches what they ask."""
    known = [item for item in items if item in library.questions]
    return sorted(known, key=lambda item: _position(library, item))


def _position(library: Library, item: str) -> tuple[int, str, int]:
    topics, slug = library.syllabus.topics, library.questions[item].topic
    place = topics.index(slug) if slug in topics else len(topics)
    asked = library.topics[slug].questions
    return place, slug, asked.index(item) if item in asked else len(asked)


def _topic_result(library: Library, slug: str, scores: list[float]) -> TopicResult:
    topic = library.topics[slug]
    right = sum(score >= 1 for score in scores)
    return TopicResult(slug, topic.title, topic.minutes, right, len(scores))
