"""What the plan and the score are computed from: the course, and what one learner did."""

import collections
import dataclasses
import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Literal

from app.content.blueprint import main_exam
from app.content.library import Library
from app.markup.model import Topic
from app.questions import types


@dataclasses.dataclass(frozen=True, slots=True)
class PageFacts:
    """A page that the exam covers. `minutes` is its reading time; `cards` are in course order.

    `domain` and `objectives[0]` are where it counts; `peers` are the other pages of that objective.
    """

    slug: str
    minutes: float
    domain: str
    objectives: tuple[str, ...]
    cards: tuple[str, ...]
    peers: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class QuestionFacts:
    """A question that an exam may ask. `guess` is the mean score of a blind guess, 0 to 1.

    `reserved` questions are left to mock exams until they were met there.
    """

    id: str
    page: str
    objectives: tuple[str, ...]
    guess: float
    reserved: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class ObjectiveFacts:
    """An objective: its domain, its share of the exam (0 to 1), and what tests it.

    `guess` is the mean guess rate of its `questions`. `pages` maps a page to the share of these
    questions that belong to it.
    """

    number: str
    domain: str
    weight: float
    guess: float
    questions: tuple[str, ...]
    pages: Mapping[str, float]


@dataclasses.dataclass(frozen=True, slots=True)
class DomainFacts:
    """A domain: its share of the exam (0 to 1), its exam questions, its objectives."""

    number: str
    weight: float
    questions: int
    objectives: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class CourseFacts:
    """The course as the plan sees it. Pages are in course order, without those beyond the exam.

    `exam` is the slug of the main mock exam and `exam_minutes` its time; empty and 0 without one.
    `notes` maps a card to what it shares with its reverse.
    """

    domains: tuple[DomainFacts, ...] = ()
    objectives: Mapping[str, ObjectiveFacts] = dataclasses.field(default_factory=dict)
    pages: Mapping[str, PageFacts] = dataclasses.field(default_factory=dict)
    questions: Mapping[str, QuestionFacts] = dataclasses.field(default_factory=dict)
    notes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    exam: str = ""
    exam_minutes: float = 0.0

    @property
    def exam_questions(self) -> int:
        """The number of questions in the exam."""
        return sum(domain.questions for domain in self.domains)


@dataclasses.dataclass(frozen=True, slots=True)
class ReadingFact:
    """A part of a page that was read, at a moment in ms; `share` of the page, 0 to 1."""

    page: str
    share: float
    day: dt.date
    at: int


@dataclasses.dataclass(frozen=True, slots=True)
class AnswerFact:
    """The first answer to a question: its score 0 to 1, study day, moment in ms."""

    question: str
    score: float
    day: dt.date
    at: int
    context: str = "practice"


@dataclasses.dataclass(frozen=True, slots=True)
class CardFact:
    """A started card. `due` is FSRS's day; `later_reviews` counts days with a review after the first.

    `page` is empty for a card that belongs to no page of the exam.
    """

    card: str
    note: str
    page: str
    stability: float
    first_day: dt.date
    last_day: dt.date
    due: dt.date
    later_reviews: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Paces:
    """A learner's minutes for a review, a new card and a question; `page` times a page's minutes."""

    review: float = 11.25 / 60
    new_card: float = 1.0
    question: float = 1.2
    page: float = 1.0


TaskKind = Literal["review", "mock", "read", "practice", "new"]


@dataclasses.dataclass(frozen=True, slots=True)
class LearnerFacts:
    """What one learner did until the morning of study day `day`.

    `readings` and `answers` (first answers only) are in the order of time. `missed` maps the
    questions last answered wrong to the study day of that answer. `added` are cards outside of the
    course's decks that are due and were never reviewed, `unavailable` course cards that can't be
    started (suspended ones, for instance). `undone` counts, by kind, the last lists in a row on
    which that task was left unfinished.
    """

    day: dt.date
    readings: Sequence[ReadingFact] = ()
    answers: Sequence[AnswerFact] = ()
    missed: Mapping[str, dt.date] = dataclasses.field(default_factory=dict)
    cards: Sequence[CardFact] = ()
    added: Sequence[str] = ()
    unavailable: frozenset[str] = frozenset()
    paces: Paces = Paces()
    undone: Mapping[str, int] = dataclasses.field(default_factory=dict)
    last_sat: dt.date | None = None

    def page_shares(self) -> dict[str, float]:
        """Return how much of each page was read, 0 to 1, by slug."""
        shares: dict[str, float] = {}
        for reading in self.readings:
            shares[reading.page] = min(1.0, shares.get(reading.page, 0.0) + reading.share)
        return shares


_EVEN = 100  # exam length for a course that defines no exam
_GUESSED = 0.6  # a question that a blind guess answers more often says too little


def describe_course(library: Library) -> CourseFacts:
    """Return the facts of a course. Takes milliseconds; `course_facts` keeps them."""
    domains = library.syllabus.domains
    domain_of = {o.number: d.number for d in domains for o in d.objectives}
    order = dict.fromkeys([*library.syllabus.topics, *library.topics])
    topics: dict[str, tuple[Topic, tuple[str, ...]]] = {}
    for topic in (library.topics[slug] for slug in order if slug in library.topics):
        mine = tuple(o for o in topic.objectives if o in domain_of)
        if mine and not topic.level:
            topics[topic.slug] = topic, mine
    by_objective: dict[str, list[str]] = {}
    for slug, (_, mine) in topics.items():
        by_objective.setdefault(mine[0], []).append(slug)
    questions = {}
    for question in library.questions.values():
        guess = types.type_of(question).guess_rate(question.answer, question.partial)
        mine = tuple(dict.fromkeys(o for o in question.objectives if o in domain_of))
        if question.drawable and question.topic in topics and mine and guess <= _GUESSED:
            questions[question.id] = QuestionFacts(
                question.id, question.topic, mine, guess, question.reserved
            )
    exam = main_exam(library)
    weights = sum(d.weight for d in domains) or 1.0
    domain_facts = tuple(
        DomainFacts(
            d.number,
            d.weight / weights,
            exam.domains.get(d.number, 0) if exam else round(_EVEN * d.weight / weights),
            tuple(o.number for o in d.objectives),
        )
        for d in domains
    )
    return CourseFacts(
        domains=domain_facts,
        objectives={
            number: _describe_objective(number, domain, questions)
            for domain in domain_facts
            for number in domain.objectives
        },
        pages={
            slug: PageFacts(
                slug,
                topic.minutes,
                domain_of[mine[0]],
                mine,
                tuple(c for c in topic.cards if c in library.cards and not library.cards[c].level),
                tuple(other for other in by_objective[mine[0]] if other != slug),
            )
            for slug, (topic, mine) in topics.items()
        },
        questions=questions,
        notes={
            card.id: min(card.id, card.sibling) for card in library.cards.values() if card.sibling
        },
        exam=exam.slug if exam else "",
        exam_minutes=exam.minutes if exam else 0.0,
    )


def _describe_objective(
    number: str, domain: DomainFacts, questions: Mapping[str, QuestionFacts]
) -> ObjectiveFacts:
    mine = [q for q in questions.values() if number in q.objectives]
    pages = collections.Counter(q.page for q in mine)
    return ObjectiveFacts(
        number,
        domain.number,
        domain.weight / len(domain.objectives),
        sum(q.guess for q in mine) / len(mine) if mine else _GUESS_UNKNOWN,
        tuple(q.id for q in mine),
        {slug: count / len(mine) for slug, count in pages.items()},
    )


_GUESS_UNKNOWN = 0.25  # one of four choices, for an objective without a question
_recent: list[tuple[Library, CourseFacts]] = []
_COURSES = 4


def course_facts(library: Library) -> CourseFacts:
    """Return the facts of a course, computed once for each state of it."""
    for known, facts in tuple(_recent):
        if known is library:
            return facts
    facts = describe_course(library)
    _recent.insert(0, (library, facts))
    del _recent[_COURSES:]
    return facts
