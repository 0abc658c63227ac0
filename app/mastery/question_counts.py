"""Questions answered, missed, unseen; weakest objective first."""

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence

from app.content.library import Library
from app.markup.model import Topic
from app.mastery.evidence import AnswerHistory
from app.mastery.objectives import (
    NOT_TESTED,
    DomainMastery,
    LearnerEvidence,
    ObjectiveMastery,
    WeakPrerequisite,
    course_by_objective,
    never_missed,
    weakest_prerequisite,
)
from app.questions.model import Question


@dataclasses.dataclass(frozen=True, slots=True)
class QuestionCount:
    """Question counts: all, answered at least once, last answered correctly."""

    total: int
    answered: int
    right: int

    @property
    def missed(self) -> int:
        """How many were last answered wrong or only partly right."""
        return self.answered - self.right

    @property
    def unseen(self) -> int:
        return self.total - self.answered


def questions_of_objective(library: Library, number: str) -> tuple[Question, ...]:
    """Return the questions that name an objective, design exercises included."""
    ids = course_by_objective(library).named.get(number, ())
    return tuple(library.questions[item] for item in ids)


def domain_by_objective(library: Library) -> dict[str, str]:
    """Return the domain number of each objective, by objective number."""
    return {
        objective.number: domain.number
        for domain in library.syllabus.domains
        for objective in domain.objectives
    }


def questions_of_topic(library: Library, slug: str) -> tuple[Question, ...]:
    return tuple(
        library.questions[item]
        for item in library.topics[slug].questions
        if item in library.questions
    )


def reserved_for_exams(library: Library, met: Collection[str]) -> frozenset[str]:
    """Return the questions reserved for mock exams, except those in `met`."""
    return frozenset(q.id for q in library.questions.values() if q.reserved and q.id not in met)


def count_missed(library: Library, firsts: Mapping[str, AnswerHistory]) -> int:
    """Return how many questions were answered wrong or partly right, and not right since."""
    known = library.questions
    return sum(first.missed for item, first in firsts.items() if item in known)


def answered_by_topic(library: Library, items: Collection[str]) -> dict[str, int]:
    """Return how many questions of each page are among the answered `items`."""
    return {
        slug: sum(question.id in items for question in questions_of_topic(library, slug))
        for slug in library.topics
    }


def apportion(weights: Mapping[str, float], questions: int) -> dict[str, int]:
    """Divide a number of questions by weight, with the largest remainder method.

    >>> apportion({"1": 0.38, "2": 0.40, "3": 0.22}, 50)
    {'1': 19, '2': 20, '3': 11}
    """
    whole = sum(weights.values()) or 1.0
    exact = {name: questions * w / whole for name, w in weights.items()}
    counts = {name: int(share) for name, share in exact.items()}
    left = questions - sum(counts.values())
    for name in sorted(exact, key=lambda n: counts[n] - exact[n])[:left]:
        counts[name] += 1
    return counts


_SHAKY = 0.2  # an objective with a weak prerequisite comes first only if it is this much lower


@dataclasses.dataclass(frozen=True, slots=True)
class WeakObjective:
    """An objective and the topic whose questions test it: one reading of its state.

    `share` is its part of the exam (0..1), `ground` a weak prerequisite of the topic. `lowest` says
    that it has the lowest belief of all tested objectives.
    """

    standing: ObjectiveMastery
    topic: Topic
    share: float
    ground: WeakPrerequisite | None = None
    lowest: bool = False

    @property
    def tested(self) -> bool:
        """Whether it has enough answers to be judged."""
        return self.standing.evidence.enough

    @property
    def low(self) -> bool:
        """Whether it was tested and is not known well."""
        return self.tested and not self.standing.known

    @property
    def unseen(self) -> int:
        return self.standing.questions - self.standing.answered

    @property
    def asked_out(self) -> bool:
        """Whether no question of it is worth answering now.

        If it is known well, all of them were answered. If not, all were answered so recently that
        another answer would not count.
        """
        if self.low:
            return not self.standing.ready
        return self.tested and not self.unseen

    @property
    def why(self) -> str:
        """The reason for its place in the order, for display."""
        answers = self.standing.evidence.answers
        if self.tested:
            return self._standing_words
        if answers:
            noun = "answer" if answers == 1 else "answers"
            return f"only {answers} {noun} so far"
        return f"{NOT_TESTED} yet"

    @property
    def _standing_words(self) -> str:
        share = f"{round(self.standing.belief.mean * 100)}%"
        if not self.low:
            return f"well known ({share}), {self.unseen} not answered yet"
        if self.lowest:
            return f"your weakest so far: {share} expected"
        if self.ground is None:
            return f"{share} expected; weaker ones build on pages to learn first"
        return f"{share} expected"


def weakest_first(
    library: Library, record: LearnerEvidence, domains: Iterable[DomainMastery]
) -> tuple[WeakObjective, ...]:
    """Return every objective that has questions, in the order to practice them.

    First those tested and not known well, lowest first; one with a weak prerequisite comes before
    the others only if it is much lower. Then those hardly tested: read ones by weight, and if
    nothing of them was read, in page order, as on the Today page. Then the rest, lowest first, and
    last those with no question left that is worth answering.
    """
    found = [_weakest_objective(library, record, d, s) for d in domains for s in d.standings]
    order = _mark_lowest([weak for weak in found if weak is not None])
    read = any(w.standing.pages.read for w in order if not w.tested)
    if read:
        return tuple(sorted(order, key=_weakness_rank))
    places = {slug: place for place, slug in enumerate(library.syllabus.topics)}

    def unread(weak: WeakObjective) -> tuple[int, bool, float]:
        topic = weak.topic
        late = never_missed(library, record, topic.objectives)
        place = places.get(topic.slug, len(places)) + late * (1 + len(places))
        return (1, weak.ground is not None, place)

    return tuple(
        sorted(order, key=lambda w: unread(w) if _weakness_rank(w)[0] == 1 else _weakness_rank(w))
    )


def _weakest_objective(
    library: Library, record: LearnerEvidence, domain: DomainMastery, standing: ObjectiveMastery
) -> WeakObjective | None:
    asked = [topic for topic in standing.topics if topic.questions]
    if not asked:
        return None
    topic = next((t for t in asked if record.read.get(t.slug)), asked[0])
    share = domain.domain.weight / len(domain.standings)
    return WeakObjective(standing, topic, share, weakest_prerequisite(library, record, topic))


def _mark_lowest(found: Sequence[WeakObjective]) -> list[WeakObjective]:
    tested = [weak for weak in found if weak.tested]
    lowest = min(tested, key=lambda weak: weak.standing.belief.mean, default=None)
    return [dataclasses.replace(w, lowest=w is lowest) for w in found]


def _weakness_rank(weak: WeakObjective) -> tuple[int, bool, float]:
    mean, shaky = weak.standing.belief.mean, weak.ground is not None
    if weak.asked_out:
        return 3, False, mean
    if weak.low:
        return 0, False, mean + (_SHAKY if shaky else 0.0)
    if not weak.tested:
        return 1, not weak.standing.pages.read, -weak.share
    return 2, False, mean
