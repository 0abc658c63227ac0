"""A course as numbers: its pages, questions and objectives with their weights in the exam."""

import collections
import dataclasses
import functools
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, TypeVar

from app.content.course import Course
from app.content.reading_routes import ESSENTIAL_SHARE, PageFraction, sum_reading_minutes_on_route
from app.markup.model import ExamBlueprint, Topic
from app.questions import types
from app.questions.model import Question


def list_questions_of_objective(course: Course, objective_number: str) -> tuple[Question, ...]:
    """Return the questions that name an objective, design exercises included."""
    return tuple(q for q in course.questions.values() if objective_number in q.objectives)


def map_objectives_to_domains(course: Course) -> dict[str, str]:
    return {
        objective.number: domain.number
        for domain in course.syllabus.domains
        for objective in domain.objectives
    }


def list_questions_of_topic(course: Course, topic_slug: str) -> tuple[Question, ...]:
    return tuple(
        course.questions[item]
        for item in course.topics[topic_slug].questions
        if item in course.questions
    )


def find_unseen_exam_only_question_ids(
    course: Course, seen_question_ids: Collection[str]
) -> frozenset[str]:
    """Return the questions reserved for mock exams, except those in `seen_question_ids`."""
    return frozenset(
        q.id
        for q in course.questions.values()
        if q.is_reserved_for_exams and q.id not in seen_question_ids
    )


def apportion_by_weight(weight_by_name: Mapping[str, float], total: int) -> dict[str, int]:
    """Divide a number of questions by weight, with the largest remainder method.

    >>> apportion_by_weight({"1": 0.38, "2": 0.40, "3": 0.22}, 50)
    {'1': 19, '2': 20, '3': 11}
    """
    total_weight = sum(weight_by_name.values()) or 1.0
    exact_counts = {name: total * w / total_weight for name, w in weight_by_name.items()}
    counts = {name: int(count) for name, count in exact_counts.items()}
    remaining = total - sum(counts.values())
    for name in sorted(exact_counts, key=lambda n: counts[n] - exact_counts[n])[:remaining]:
        counts[name] += 1
    return counts


def find_main_exam(course: Course) -> ExamBlueprint | None:
    """Return the mock exam closest to the real exam: the one with the most questions."""
    exams = sorted(course.exams.values(), key=lambda exam: (-exam.question_count, exam.slug))
    return exams[0] if exams else None


MIN_QUESTIONS_TO_SHORTEN = 30
"""Exams with fewer questions get no short version."""
SHORT_EXAM_SHARE = 0.4
"""Length of a short paper as a share of the full one: 20 questions of 50."""


def can_exam_be_shortened(exam: ExamBlueprint) -> bool:
    return exam.question_count >= MIN_QUESTIONS_TO_SHORTEN


def count_short_exam_questions(exam: ExamBlueprint) -> int:
    return round(exam.question_count * SHORT_EXAM_SHARE)


def make_short_exam(exam: ExamBlueprint) -> ExamBlueprint:
    domains = apportion_by_weight(exam.question_count_by_domain, count_short_exam_questions(exam))
    return derive_exam_with_domain_counts(exam, "short", "Short mock exam", domains)


def derive_exam_with_domain_counts(
    exam: ExamBlueprint, slug_suffix: str, title: str, question_count_by_domain: Mapping[str, int]
) -> ExamBlueprint:
    """Return an exam with the given questions per domain and a proportional time limit."""
    count = sum(question_count_by_domain.values())
    return dataclasses.replace(
        exam,
        slug=f"{exam.slug}~{slug_suffix}",
        title=title,
        question_count=count,
        minutes=max(1, round(exam.minutes * count / exam.question_count)),
        question_count_by_domain=question_count_by_domain,
    )


# a paper with many unanswered questions says little about what the learner knows
ENOUGH_ANSWERED_SHARE = 0.9


def is_paper_answered_enough_to_compare(answered_count: int, question_count: int) -> bool:
    """Return whether enough of a paper was answered to compare its score with a forecast.

    >>> [is_paper_answered_enough_to_compare(*counts) for counts in ((45, 50), (44, 50), (0, 0))]
    [True, False, False]
    """
    return question_count > 0 and answered_count >= ENOUGH_ANSWERED_SHARE * question_count


_DEFAULT_EXAM_QUESTION_COUNT = 100  # exam length for a course that defines no exam
_MAX_GUESS_CHANCE = 0.6  # a question that a blind guess answers more often says too little
_GUESS_UNKNOWN = 0.25  # one of four choices, for an objective without a question
_MAX_CACHED_COURSES = 4


@dataclasses.dataclass(frozen=True, slots=True)
class PageFacts:
    """A page that the exam covers. `reading_minutes` is its reading time; `card_ids` are in course order.

    `essential_reading_minutes` are those of its essential sections, 0 if it has none. `domain` and
    `objectives[0]` are where it counts; `required_pages` are the pages to read before it.
    """

    slug: str
    reading_minutes: float
    domain: str
    objectives: tuple[str, ...]
    card_ids: tuple[str, ...]
    same_objective_pages: tuple[str, ...] = ()
    essential_reading_minutes: float = 0.0
    required_pages: tuple[str, ...] = ()

    def compute_reading_minutes_of_fraction(self, fraction: PageFraction) -> float:
        if not 0 < self.essential_reading_minutes < self.reading_minutes:
            return self.reading_minutes * fraction.share
        other_share = (fraction.share - ESSENTIAL_SHARE * fraction.essential_share) / (
            1 - ESSENTIAL_SHARE
        )
        return (
            self.essential_reading_minutes * fraction.essential_share
            + (self.reading_minutes - self.essential_reading_minutes) * other_share
        )


@dataclasses.dataclass(frozen=True, slots=True)
class QuestionFacts:
    """A question that an exam may ask. `guess_score` is the mean score of a blind guess, 0 to 1.

    Those with `is_exam_only` are kept for mock exams until the learner has met them there.
    """

    id: str
    page: str
    objectives: tuple[str, ...]
    guess_score: float
    is_exam_only: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class ObjectiveFacts:
    """An objective: its domain, its share of the exam (0 to 1), and what tests it.

    `guess_score` is the mean guess rate of its `question_ids`. `question_share_by_page` maps a page to the share of these
    questions that belong to it.
    """

    number: str
    domain: str
    exam_share: float
    guess_score: float
    question_ids: tuple[str, ...]
    question_share_by_page: Mapping[str, float]


@dataclasses.dataclass(frozen=True, slots=True)
class DomainFacts:
    """A domain: its share of the exam (0 to 1), its exam questions, its objectives."""

    number: str
    exam_share: float
    exam_question_count: int
    objective_numbers: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class CourseFacts:
    """The course as the plan sees it. Pages are in course order, without those beyond the exam.

    `main_exam_slug` is the slug of the main mock exam and `main_exam_minutes` its time; empty and 0
    without one. `note_by_card` maps a card to what it shares with its reverse.
    """

    domains: tuple[DomainFacts, ...] = ()
    objectives: Mapping[str, ObjectiveFacts] = dataclasses.field(default_factory=dict)
    pages: Mapping[str, PageFacts] = dataclasses.field(default_factory=dict)
    questions: Mapping[str, QuestionFacts] = dataclasses.field(default_factory=dict)
    note_by_card: Mapping[str, str] = dataclasses.field(default_factory=dict)
    main_exam_slug: str = ""
    main_exam_minutes: float = 0.0

    @property
    def main_exam_question_count(self) -> int:
        return sum(domain.exam_question_count for domain in self.domains)

    def describe_guessing_score(self) -> str:
        """Return what blind guessing scores, which an expected score includes; "" without an exam."""
        mean = sum(
            domain.exam_question_count
            / len(domain.objective_numbers)
            * self.objectives[number].guess_score
            for domain in self.domains
            for number in domain.objective_numbers
        )
        return (
            f"Guessing alone scores about {round(mean)}." if self.main_exam_question_count else ""
        )


class TopicInExam(NamedTuple):
    """A topic, and those of its objectives that the exam asks for."""

    topic: Topic
    exam_objectives: tuple[str, ...]


def compute_course_facts(course: Course) -> CourseFacts:
    """Return the facts of a course. Takes milliseconds; `cached_course_facts` keeps them."""
    domains = course.syllabus.domains
    domain_of = {o.number: d.number for d in domains for o in d.objectives}
    order = dict.fromkeys([*course.syllabus.topics, *course.topics])
    topics: dict[str, TopicInExam] = {}
    for topic in (course.topics[slug] for slug in order if slug in course.topics):
        exam_objectives = tuple(o for o in topic.objectives if o in domain_of)
        if exam_objectives and not topic.level:
            topics[topic.slug] = TopicInExam(topic, exam_objectives)
    by_objective: dict[str, list[str]] = {}
    for slug, topic_in_exam in topics.items():
        by_objective.setdefault(topic_in_exam.exam_objectives[0], []).append(slug)
    questions = {}
    for question in course.questions.values():
        guess = types.question_type_of(question).compute_guess_score(
            question.answer, question.partial
        )
        exam_objectives = tuple(dict.fromkeys(o for o in question.objectives if o in domain_of))
        is_asked = question.may_be_asked_in_exams and question.topic in topics and exam_objectives
        if is_asked and guess <= _MAX_GUESS_CHANCE:
            questions[question.id] = QuestionFacts(
                question.id, question.topic, exam_objectives, guess, question.is_reserved_for_exams
            )
    exam = find_main_exam(course)
    total_weight = sum(d.weight for d in domains) or 1.0
    domain_facts = tuple(
        DomainFacts(
            d.number,
            d.weight / total_weight,
            exam.question_count_by_domain.get(d.number, 0)
            if exam
            else round(_DEFAULT_EXAM_QUESTION_COUNT * d.weight / total_weight),
            tuple(o.number for o in d.objectives),
        )
        for d in domains
    )
    return CourseFacts(
        domains=domain_facts,
        objectives={
            number: _build_objective_facts(number, domain, questions)
            for domain in domain_facts
            for number in domain.objective_numbers
        },
        pages={
            slug: PageFacts(
                slug,
                topic.minutes,
                domain_of[exam_objectives[0]],
                exam_objectives,
                tuple(c for c in topic.cards if c in course.cards and not course.cards[c].level),
                tuple(other for other in by_objective[exam_objectives[0]] if other != slug),
                sum_reading_minutes_on_route(topic, "short"),
                topic.requires,
            )
            for slug, (topic, exam_objectives) in topics.items()
        },
        questions=questions,
        note_by_card={
            card.id: min(card.id, card.sibling) for card in course.cards.values() if card.sibling
        },
        main_exam_slug=exam.slug if exam else "",
        main_exam_minutes=exam.minutes if exam else 0.0,
    )


def _build_objective_facts(
    number: str, domain: DomainFacts, questions: Mapping[str, QuestionFacts]
) -> ObjectiveFacts:
    objective_questions = [q for q in questions.values() if number in q.objectives]
    pages = collections.Counter(q.page for q in objective_questions)
    return ObjectiveFacts(
        number,
        domain.number,
        domain.exam_share / len(domain.objective_numbers),
        sum(q.guess_score for q in objective_questions) / len(objective_questions)
        if objective_questions
        else _GUESS_UNKNOWN,
        tuple(q.id for q in objective_questions),
        {slug: count / len(objective_questions) for slug, count in pages.items()},
    )


T = TypeVar("T")


def cache_by_course(compute: Callable[[Course], T]) -> Callable[[Course], T]:
    """Return the function computing once for each state of a course, for the latest few."""
    recent: list[tuple[Course, T]] = []

    @functools.wraps(compute)
    def compute_once(course: Course) -> T:
        for cached_course, value in tuple(recent):
            if cached_course is course:
                return value
        value = compute(course)
        recent.insert(0, (course, value))
        del recent[_MAX_CACHED_COURSES:]
        return value

    return compute_once


cached_course_facts = cache_by_course(compute_course_facts)
