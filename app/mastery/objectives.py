"""Mastery of each objective."""

import collections
import dataclasses
import datetime as dt
from collections.abc import Collection, Iterable, Mapping

from app.content.library import Library
from app.markup.model import Domain, Objective, Topic
from app.mastery.belief import Belief, update_belief
from app.mastery.evidence import (
    ENOUGH,
    TAUGHT,
    UNKNOWN,
    AnswerHistory,
    DayAnswers,
    Evidence,
    ObjectiveCards,
    answers_by_day,
    guess_rate,
    weigh_evidence,
)
from app.questions.model import Question


@dataclasses.dataclass(frozen=True, slots=True)
class ObjectiveQuestions:
    """The questions of an objective: the guess rate of each, and their mean."""

    rates: tuple[tuple[str, float], ...] = ()
    guess: float = UNKNOWN


@dataclasses.dataclass(frozen=True, slots=True)
class CourseByObjective:
    """Questions and topics of the course, indexed by objective.

    `named` has all questions that name the objective, `asked` those of them that an exam may
    include. `varied` questions draw new numbers each time.
    """

    named: Mapping[str, tuple[str, ...]]
    asked: Mapping[str, ObjectiveQuestions]
    topics: Mapping[str, tuple[Topic, ...]]
    objectives: Mapping[str, tuple[str, ...]]
    anchors: Mapping[str, frozenset[str]]
    rates: Mapping[str, float]
    varied: frozenset[str]


_turned: list[tuple[Library, CourseByObjective]] = []
_FEW = 2


def course_by_objective(library: Library) -> CourseByObjective:
    """Return the course by objective, computed once per state of the course."""
    for known, course in tuple(_turned):
        if known is library:
            return course
    course = _turn_around(library)
    _turned.insert(0, (library, course))
    del _turned[_FEW:]
    return course


def _turn_around(library: Library) -> CourseByObjective:
    rates = {q.id: guess_rate(q) for q in library.questions.values()}
    questions: dict[str, list[Question]] = {}
    named: dict[str, list[str]] = {}
    for question in library.questions.values():
        for number in dict.fromkeys(question.objectives):
            named.setdefault(number, []).append(question.id)
            if question.drawable:
                questions.setdefault(number, []).append(question)
    topics: dict[str, list[Topic]] = {}
    order = [s for s in library.syllabus.topics if s in library.topics]
    order = sorted(
        dict.fromkeys([*order, *library.topics]),
        key=lambda slug: library.topics[slug].level,  # advanced topics come last
    )
    for slug in order:
        for number in library.topics[slug].objectives:
            topics.setdefault(number, []).append(library.topics[slug])
    return CourseByObjective(
        {number: tuple(mine) for number, mine in named.items()},
        {number: _objective_questions(mine, rates) for number, mine in questions.items()},
        {number: tuple(mine) for number, mine in topics.items()},
        {q.id: q.objectives for q in library.questions.values()},
        {slug: frozenset(readable_anchors(topic)) for slug, topic in library.topics.items()},
        rates,
        frozenset(q.id for q in library.questions.values() if q.computed),
    )


def _objective_questions(
    questions: Iterable[Question], by_item: Mapping[str, float]
) -> ObjectiveQuestions:
    rates = tuple((q.id, by_item[q.id]) for q in questions)
    return ObjectiveQuestions(rates, sum(rate for _, rate in rates) / len(rates))


def readable_anchors(topic: Topic) -> tuple[str, ...]:
    """Return what can be marked as read on a page: its headed sections, or the whole page."""
    return tuple(s.anchor for s in topic.sections if s.anchor) or ("",)


NOT_TESTED, TOO_FEW = "not tested", "few answers"
"""Labels of objectives without answers, and with too few to judge."""
GOOD = 0.8
"""The chance of a right answer from which an objective counts as known well."""


@dataclasses.dataclass(frozen=True, slots=True)
class TopicCards:
    """Totals of the begun cards of a topic: how many, and how many left their steps.

    `days` is the sum of days since their last answers, `losses` that of 1 ÷ stability (per day).
    Both cover the `begun` cards.
    """

    begun: int = 0
    known: int = 0
    days: float = 0.0
    losses: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class LearnerEvidence:
    """What is stored about a learner, in the form the mastery rules use.

    `firsts` are first answers by question, `cards` the begun cards by topic, `read` the sections
    read by topic.
    """

    firsts: Mapping[str, AnswerHistory]
    cards: Mapping[str, TopicCards]
    read: Mapping[str, Collection[str]]


NOTHING = LearnerEvidence({}, {}, {})


@dataclasses.dataclass(frozen=True, slots=True)
class PagesRead:
    """Sections on the pages of an objective: read, and all."""

    read: int
    all: int


@dataclasses.dataclass(frozen=True, slots=True)
class ObjectiveMastery:
    """The belief in one objective, and the evidence for it.

    `guess` is the guess rate of the questions that an exam may include. `questions` counts all that
    name the objective, exercises included; `answered` of them were answered. An answer to one of
    the `ready` questions would count as new evidence. `cards` are those of its topics.
    """

    objective: Objective
    topics: tuple[Topic, ...]
    evidence: Evidence
    belief: Belief
    guess: float
    questions: int
    answered: int
    ready: int
    cards: ObjectiveCards
    pages: PagesRead

    @property
    def started(self) -> bool:
        """Whether the learner did anything for this objective."""
        return bool(self.evidence.answers or self.cards.begun or self.pages.read)

    @property
    def unjudged_reason(self) -> str:
        """Why no chance of a right answer is shown, in two words; empty if it is shown."""
        if self.evidence.enough:
            return ""
        return TOO_FEW if self.evidence.answers else NOT_TESTED

    @property
    def known(self) -> bool:
        """Whether enough answers show that it is known well."""
        return self.evidence.enough and self.belief.mean >= GOOD

    @property
    def weak(self) -> bool:
        """Whether enough answers show a mean nearer to guessing than to knowing."""
        middle = (1 + self.guess) / 2
        return self.evidence.enough and self.belief.mean < middle


@dataclasses.dataclass(frozen=True, slots=True)
class DomainMastery:
    domain: Domain
    standings: tuple[ObjectiveMastery, ...]

    @property
    def evidence(self) -> Evidence:
        return sum((s.evidence for s in self.standings), Evidence())

    @property
    def mean(self) -> float:
        """The chance (0..1) of a right answer to a question of this domain.

        Its objectives count equally, because their weights are not published.
        """
        means = [s.belief.mean for s in self.standings]
        return sum(means) / len(means) if means else UNKNOWN


def build_standings(
    library: Library, record: LearnerEvidence, day: dt.date, ago: int = 0
) -> tuple[DomainMastery, ...]:
    """Return the mastery of every objective, in syllabus order, as of study day `day`.

    A question counts for each objective that it names. Questions that left the course do not count,
    nor do design exercises, which no exam includes. With `ago`, return what was known that many
    days before `day`, from the answers given by then.
    """
    course = course_by_objective(library)
    then = day - dt.timedelta(days=ago)
    if ago:
        sorted_: Sorted = _answer_lots(course, record.firsts, course.asked, then)
    else:
        sorted_ = _sort_answers(course, record.firsts)
    return tuple(
        _domain_mastery(domain, course, record, sorted_, (then, ago))
        for domain in library.syllabus.domains
    )


Sorted = Mapping[str, tuple[DayAnswers, ...]]
Sure = collections.Counter[tuple[int, bool]]
# By objective and days ago: the answers, cards and day, and the evidence they add up to.
Gathered = dict[tuple[str, int], tuple[tuple[DayAnswers, ...], ObjectiveCards, dt.date, Evidence]]


class AnswerHistories(dict[str, AnswerHistory]):
    """First answers by question, with a cache of what was computed from them.

    Sorting thousands of answers takes longer than everything after it. So the sorted answers of a
    course are cached with this object and passed on to the copy with `more` answers, where only the
    objectives of the questions in `since` are sorted again. Evidence is computed again only if the
    answers, the cards or the day changed.
    """

    def __init__(self, answers: Mapping[str, AnswerHistory] | None = None) -> None:
        super().__init__(answers or {})
        self.lots: tuple[CourseByObjective, Sorted] | None = None
        self.gathered: Gathered = {}
        self._held: tuple[CourseByObjective, int] | None = None
        self.since: frozenset[str] = frozenset()
        self._sure: Sure | None = None

    def merged_with(self, more: Mapping[str, AnswerHistory]) -> "AnswerHistories":
        """Return a copy with more answers."""
        both = AnswerHistories(self)
        both.update(more)
        both.lots, both.since = self.lots, self.since.union(more)
        both.gathered = dict(self.gathered)
        if more.keys() & self.keys():
            return both
        if self._sure is not None:
            both._sure = self._sure + _count_right_and_wrong(more.values())
        if self._held is not None:
            course, count = self._held
            both._held = course, count + len(more.keys() & course.rates.keys())
        return both

    def held(self, course: CourseByObjective) -> int:
        """See `counted`."""
        if self._held is None or self._held[0] is not course:
            self._held = course, len(self.keys() & course.rates.keys())
        return self._held[1]

    def sure(self) -> Sure:
        """See `certainties`."""
        if self._sure is None:
            self._sure = _count_right_and_wrong(self.values())
        return self._sure


def count_answered(library: Library, firsts: Mapping[str, AnswerHistory]) -> int:
    """Return how many answers are to questions still in the course, each counted once."""
    course = course_by_objective(library)
    if isinstance(firsts, AnswerHistories):
        return firsts.held(course)
    return len(firsts.keys() & course.rates.keys())


def count_by_certainty(firsts: Mapping[str, AnswerHistory]) -> Sure:
    """Count the answers per certainty (0 for none), fully right or not."""
    return (
        firsts.sure()
        if isinstance(firsts, AnswerHistories)
        else _count_right_and_wrong(firsts.values())
    )


def _count_right_and_wrong(answers: Iterable[AnswerHistory]) -> Sure:
    return collections.Counter((f.certainty, f.score >= 1) for f in answers)


def _sort_answers(course: CourseByObjective, firsts: Mapping[str, AnswerHistory]) -> Sorted:
    """Return the answers of each objective by day, newest first."""
    if not isinstance(firsts, AnswerHistories):
        return _answer_lots(course, firsts, course.asked)
    known = firsts.lots
    if known is None or known[0] is not course:
        made = _answer_lots(course, firsts, course.asked)
    else:
        again = {n for item in firsts.since for n in course.objectives.get(item, ())}
        made = {**known[1], **_answer_lots(course, firsts, again & course.asked.keys())}
    firsts.lots, firsts.since = (course, made), frozenset()
    return made


def _answer_lots(
    course: CourseByObjective,
    firsts: Mapping[str, AnswerHistory],
    numbers: Iterable[str],
    until: dt.date | None = None,
) -> dict[str, tuple[DayAnswers, ...]]:
    made = {}
    for number in numbers:
        asked = course.asked[number]
        mine = (
            (firsts[item].counting(varied=item in course.varied, until=until), rate)
            for item, rate in asked.rates
            if item in firsts
        )
        made[number] = answers_by_day(mine, asked.guess)
    return made


def _domain_mastery(
    domain: Domain,
    course: CourseByObjective,
    record: LearnerEvidence,
    by_day: Sorted,
    when: tuple[dt.date, int],
) -> DomainMastery:
    found = []
    for objective in domain.objectives:
        asked = course.asked.get(objective.number, ObjectiveQuestions())
        topics = course.topics.get(objective.number, ())
        cards = _merge_cards(topics, record)
        if when[1]:
            cards = cards.earlier(when[1])
        mine = by_day.get(objective.number, ())
        key = (objective.number, when[1])
        evidence = _cached_evidence(record.firsts, key, mine, asked.guess, cards, when[0])
        found.append((objective, topics, asked, cards, evidence))
    whole = sum((each[4] for each in found), Evidence())
    floor = sum(each[2].guess for each in found) / max(1, len(found))
    return DomainMastery(
        domain,
        tuple(
            ObjectiveMastery(
                objective=objective,
                topics=topics,
                evidence=mine,
                belief=update_belief(mine, asked.guess, whole - mine, floor),
                guess=asked.guess,
                **_objective_counts(course, record, objective.number, when[0]),
                cards=cards,
                pages=_pages_read(topics, course, record),
            )
            for objective, topics, asked, cards, mine in found
        ),
    )


def _objective_counts(
    course: CourseByObjective, record: LearnerEvidence, number: str, day: dt.date
) -> dict[str, int]:
    named = course.named.get(number, ())
    known = {item: record.firsts[item] for item in named if item in record.firsts}
    again = sum(first.ready(day, varied=item in course.varied) for item, first in known.items())
    return {
        "questions": len(named),
        "answered": len(known),
        "ready": len(named) - len(known) + again,
    }


def _cached_evidence(
    firsts: Mapping[str, AnswerHistory],
    key: tuple[str, int],
    mine: tuple[DayAnswers, ...],
    guess: float,
    cards: ObjectiveCards,
    day: dt.date,
) -> Evidence:
    """Return `weigh_evidence`, cached for the same answers, cards and day."""
    if not isinstance(firsts, AnswerHistories):
        return weigh_evidence(mine, guess, cards, day)
    known = firsts.gathered.get(key)
    # For one state of the course the answers are the same objects until one is added.
    if known and known[0] is mine and known[1] == cards and known[2] == day:
        return known[3]
    made = weigh_evidence(mine, guess, cards, day)
    firsts.gathered[key] = (mine, cards, day, made)
    return made


def _merge_cards(topics: Iterable[Topic], record: LearnerEvidence) -> ObjectiveCards:
    """Combine the cards of several topics: mean age, harmonic mean of stability."""
    begun = all_ = 0
    days = losses = 0.0
    for topic in topics:
        all_ += len(topic.cards)
        mine = record.cards.get(topic.slug)
        if mine is not None:
            begun, days = begun + mine.begun, days + mine.days
            losses += mine.losses
    if not begun:
        return ObjectiveCards(all=all_)
    return ObjectiveCards(begun, all_, days / begun, begun / losses if losses else TAUGHT)


def _pages_read(
    topics: Iterable[Topic], course: CourseByObjective, record: LearnerEvidence
) -> PagesRead:
    read = whole = 0
    for topic in topics:
        names = course.anchors[topic.slug]
        whole += len(names)
        done = record.read.get(topic.slug)
        if done:
            read += len(names.intersection(done))
    return PagesRead(read, whole)


@dataclasses.dataclass(frozen=True, slots=True)
class WeakPrerequisite:
    """A weak prerequisite: its `answers`, of which `right` count today."""

    topic: Topic
    answers: int
    right: float

    @property
    def why(self) -> str:
        """The reason why it is weak, for display."""
        if not self.answers:
            return "it is neither read nor tested"
        if self.answers < ENOUGH and not self.right:
            return "no answer to it was right yet"
        return f"{self.right:.3g} of {self.answers} answers to it were right"


def weakest_prerequisite(
    library: Library, record: LearnerEvidence, topic: Topic
) -> WeakPrerequisite | None:
    """Return the weak prerequisite of `topic` to study first, or None if there is none.

    A prerequisite is weak if at least ENOUGH of its questions were answered and the mean is nearer
    to guessing than to knowing. With fewer answers it is weak unless it was read, one of its cards
    was begun, or an answer to it or to its objectives shows that it is known. If a weak
    prerequisite has a weak prerequisite itself, that one comes first.
    """
    return _find_weakest_prerequisite(library, record, topic, frozenset({topic.slug}))


def _find_weakest_prerequisite(
    library: Library, record: LearnerEvidence, topic: Topic, seen: frozenset[str]
) -> WeakPrerequisite | None:
    for slug in topic.requires:
        needed = library.topics.get(slug)
        if needed is None or slug in seen:
            continue
        ground = _judge_prerequisite(library, record, needed)
        if ground is not None:
            return _find_weakest_prerequisite(library, record, needed, seen | {slug}) or ground
    return None


def _judge_prerequisite(
    library: Library, record: LearnerEvidence, topic: Topic
) -> WeakPrerequisite | None:
    firsts = _topic_answers(record.firsts, topic)
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
    """Return whether each objective was answered, and every first answer was right."""
    named, firsts = course_by_objective(library).named, record.firsts
    for number in objectives:
        mine = [firsts[item] for item in named.get(number, ()) if item in firsts]
        if not mine or any(first.score < 1 for first in mine):
            return False
    return True


def _topic_answers(firsts: Mapping[str, AnswerHistory], topic: Topic) -> dict[str, AnswerHistory]:
    return {q: firsts[q] for q in topic.questions if q in firsts}
