"""What a topic rests on: which of its prerequisites is too weak to build on."""

import dataclasses
from collections.abc import Iterable, Mapping

from app.content.live.library import Library
from app.content.model import Topic
from app.mastery.course import course_by_objective
from app.mastery.evidence import ENOUGH, AnswerHistory
from app.mastery.standing import LearnerEvidence


@dataclasses.dataclass(frozen=True, slots=True)
class WeakPrerequisite:
    """A prerequisite that is weak: its `answers`, of which `right` count today."""

    topic: Topic
    answers: int
    right: float

    @property
    def why(self) -> str:
        """What is weak about it."""
        if not self.answers:
            return "it is neither read nor tested"
        if self.answers < ENOUGH and not self.right:
            return "no answer to it was right yet"
        return f"{self.right:.3g} of {self.answers} answers to it were right"


def weakest_prerequisite(
    library: Library, record: LearnerEvidence, topic: Topic
) -> WeakPrerequisite | None:
    """The weak prerequisite of `topic` to begin with, or None when it stands well.

    A prerequisite is weak when at least ENOUGH of its questions were answered and the
    mean is nearer to guessing than to knowing. With fewer answers it is weak unless
    it was read, a card of it was begun, or an answer to it or to its objectives says
    that it is known. Where a weak one itself rests on a weak one, that one comes first.
    """
    return _weakest(library, record, topic, frozenset({topic.slug}))


def _weakest(
    library: Library, record: LearnerEvidence, topic: Topic, seen: frozenset[str]
) -> WeakPrerequisite | None:
    for slug in topic.requires:
        needed = library.topics.get(slug)
        if needed is None or slug in seen:
            continue
        ground = _ground(library, record, needed)
        if ground is not None:
            return _weakest(library, record, needed, seen | {slug}) or ground
    return None


def _ground(library: Library, record: LearnerEvidence, topic: Topic) -> WeakPrerequisite | None:
    firsts = _firsts(record.firsts, topic)
    course = course_by_objective(library)
    right = sum(
        share * one.value
        for item, first in firsts.items()
        for share, one in first.counting(varied=item in course.varied).shares()
    )
    if len(firsts) >= ENOUGH:
        rates = course.rates
        guess = sum(rates[q] for q in firsts) / len(firsts)
        weak = right / len(firsts) < (1 + guess) / 2
        return WeakPrerequisite(topic, len(firsts), right) if weak else None
    if right or record.read.get(topic.slug) or topic.slug in record.cards:
        return None
    if topic.objectives and never_missed(library, record, topic.objectives):
        return None
    return WeakPrerequisite(topic, len(firsts), right)


def never_missed(library: Library, record: LearnerEvidence, objectives: Iterable[str]) -> bool:
    """Whether each of them was answered, and every time rightly at first."""
    named, firsts = course_by_objective(library).named, record.firsts
    for number in objectives:
        mine = [firsts[item] for item in named.get(number, ()) if item in firsts]
        if not mine or any(first.score < 1 for first in mine):
            return False
    return True


def _firsts(firsts: Mapping[str, AnswerHistory], topic: Topic) -> dict[str, AnswerHistory]:
    return {q: firsts[q] for q in topic.questions if q in firsts}
