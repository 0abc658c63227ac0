"""Which page to read next, and how much of the pages is read."""

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from app.content.live.library import Library
from app.content.model import Topic
from app.mastery.course import anchors
from app.mastery.grounds import WeakPrerequisite, never_missed, weakest_prerequisite
from app.mastery.standing import DomainMastery, LearnerEvidence
from app.mastery.store import PageProgress
from app.mastery.weakest import WeakObjective, weakest_first
from app.progress.situation import StudyStep, TodayInputs


def reading_step(now: TodayInputs) -> StudyStep | None:
    """The page left open, or the next in the order of the course that stands well.

    Where nothing on the weakest objective was read and it rests on a weak page with
    something left to read, that page leads.
    Pages whose objectives were all answered rightly so far come after all others,
    those on what is known well later, and what lies beyond the exam last. Where every
    page left rests on something weak, that comes first.
    """
    library, record = now.library, now.record
    begun = library.topics.get(now.last_topic)
    going_on = _reading(begun, record) if begun else None
    if going_on is not None:
        return going_on
    urgent = _urgent(library, record, now.domains)
    ground = urgent.ground if urgent is not None else None
    if urgent is not None and ground and _reading(ground.topic, record):
        return first_this(ground, urgent.topic, record)
    needed: StudyStep | None = None
    for topic in reading_order(library, record, now.domains, is_short=now.is_short):
        step = _reading(topic, record)
        if step is None:
            continue
        ground = weakest_prerequisite(library, record, topic)
        if ground is None:
            return step
        needed = needed or first_this(ground, topic, record)
    return needed


def reading_steps(now: TodayInputs) -> Iterator[StudyStep]:
    """The next page, and those after it that the exam asks for, in order."""
    first = reading_step(now)
    if first is None:
        return
    yield first
    library, record = now.library, now.record
    for topic in reading_order(library, record, now.domains, is_short=now.is_short):
        step = _reading(topic, record)
        if step is not None and topic.slug != first.topic and not topic.level:
            yield step


def reading_order(
    library: Library,
    record: LearnerEvidence,
    domains: Sequence[DomainMastery],
    *,
    is_short: bool = False,
) -> list[Topic]:
    """The pages of the course in the order in which they are worth reading.

    That on the weakest objective leads where nothing on it was read; those on what
    is known well come last. Where time `is_short`, the first page of every objective
    comes before the second of any, also where the few answers so far were right: what
    is left out is never a whole domain.
    """
    known, urgent = _known_well(domains), _urgent(library, record, domains)
    order = [library.topics[s] for s in library.syllabus.topics if s in library.topics]
    rounds = _rounds(order) if is_short else {}
    order.sort(
        key=lambda topic: (
            urgent is None or topic != urgent.topic,
            topic.level,
            known.issuperset(topic.objectives),
            rounds.get(topic.slug, 0),
            never_missed(library, record, topic.objectives),
        )
    )
    return order


def _urgent(
    library: Library, record: LearnerEvidence, domains: Sequence[DomainMastery]
) -> WeakObjective | None:
    """The weakest objective where it was tested and nothing on it was read."""
    weak = next(iter(weakest_first(library, record, domains)), None)
    return weak if weak and weak.low and not weak.standing.pages.read else None


def _rounds(order: Iterable[Topic]) -> dict[str, int]:
    """How many pages of its objective come before each page."""
    before: collections.Counter[str] = collections.Counter()
    found = {}
    for topic in order:
        of = topic.objectives[0] if topic.objectives else ""
        found[topic.slug] = before[of]
        before[of] += 1
    return found


def minutes_left(topic: Topic, record: LearnerEvidence) -> float:
    """The minutes of a page that are not read yet."""
    step = _reading(topic, record)
    return step.minutes if step else 0.0


def minutes_read(pages: Iterable[PageProgress], library: Library, since: int) -> float:
    """The minutes of what was marked as read from a moment in milliseconds on."""
    return sum(
        _minutes_of(library.topics[page.topic], section)
        for page in pages
        if page.at >= since and page.topic in library.topics
        for section, at in page.sections.items()
        if at >= since
    )


def _minutes_of(topic: Topic, section: str) -> float:
    if not section:
        return topic.minutes
    return next((s.minutes for s in topic.sections if s.anchor == section), 0.0)


def _known_well(domains: Iterable[DomainMastery]) -> frozenset[str]:
    """The objectives that answers show to be known."""
    return frozenset(
        standing.objective.number
        for domain in domains
        for standing in domain.standings
        if standing.known
    )


def _reading(topic: Topic, record: LearnerEvidence) -> StudyStep | None:
    read = frozenset(record.read.get(topic.slug, ()))
    left = [a for a in anchors(topic) if a not in read]
    if not left:
        return None
    address = f"/concepts/{topic.slug}"
    sections = {s.anchor: s for s in topic.sections}
    if not any(a in read for a in anchors(topic)):
        goal = "objective" if len(topic.objectives) == 1 else "objectives"
        reason = f"{goal} {', '.join(topic.objectives)}, not read yet"
        slug = topic.slug
        return StudyStep("read", topic.title, address, reason, topic.minutes, slug)
    following = sections[left[0]]
    reason = f"continue at section {following.number}, {following.title}"
    minutes = sum(sections[a].minutes for a in left)
    place = f"{address}#{following.anchor}"
    return StudyStep("continue", topic.title, place, reason, minutes, topic.slug)


def first_this(ground: WeakPrerequisite, topic: Topic, record: LearnerEvidence) -> StudyStep:
    """Go over a weak prerequisite before the topic that rests on it."""
    needed = ground.topic
    reason = f"first this: {topic.title} builds on it, and {ground.why}"
    again = _reading(needed, record)
    if again is not None:
        return dataclasses.replace(again, reason=reason)
    slug = needed.slug
    address = f"/concepts/{slug}"
    return StudyStep("read", needed.title, address, reason, needed.minutes, slug)
