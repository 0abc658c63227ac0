"""Coverage, answer cues, overdue reviews.

A test taker who knows nothing can beat chance by following a cue that the authors left in the
options.
"""

import dataclasses
import datetime as dt
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated

from fastapi import Depends

from app.content.course import Course
from app.content.course_facts import list_questions_of_objective, map_objectives_to_domains
from app.markup.model import CalculatorBlock, HtmlBlock, Topic
from app.markup.text import reduce_to_words
from app.questions import types
from app.questions.model import Question
from app.web.dependencies import CurrentCourse


async def get_course_with_drafts(course: CurrentCourse) -> Course:
    """Return the course of the request with its drafts; `async`, because it is only a lookup."""
    return course.with_drafts()


CourseWithDrafts = Annotated[Course, Depends(get_course_with_drafts)]

COVERAGE_COLUMN_TITLES = {
    "pages": "pages",
    "words": "words",
    "pictures": "pictures",
    "calculators": "calculators",
    "questions": "questions",
    "questions_by_type": "by kind",
    "deeper_questions": "deeper",
    "reserved_questions": "reserve",
    "computed_questions": "computed",
    "cards": "cards",
    "glossary_terms": "terms",
    "sources": "sources",
    "sources_by_publisher": "by publisher",
    "oldest_review": "oldest review",
}


@dataclasses.dataclass(frozen=True, slots=True)
class ObjectiveCoverage:
    number: str
    name: str
    pages: int
    words: int
    pictures: int
    calculators: int
    questions: int
    questions_by_type: Mapping[str, int]
    deeper_questions: int
    reserved_questions: int
    computed_questions: int
    cards: int
    glossary_terms: int
    sources: int
    sources_by_publisher: Mapping[str, int]
    oldest_review: dt.date | None

    @property
    def cells(self) -> tuple[str, ...]:
        """The values as text, in the order of `COVERAGE_COLUMN_TITLES`."""
        return tuple(_format_cell(getattr(self, field)) for field in COVERAGE_COLUMN_TITLES)


def compute_coverage(course: Course) -> tuple[ObjectiveCoverage, ...]:
    """Return the coverage of every objective, in syllabus order."""
    topics: dict[str, list[Topic]] = {}
    for topic in sorted(course.topics.values(), key=lambda topic: topic.level):
        for number in topic.objectives:
            topics.setdefault(number, []).append(topic)
    return tuple(
        _count_objective_coverage(course, objective.number, objective.name, topics)
        for domain in course.syllabus.domains
        for objective in domain.objectives
    )


def _count_objective_coverage(
    course: Course,
    objective_number: str,
    objective_name: str,
    topics_by_objective: Mapping[str, Sequence[Topic]],
) -> ObjectiveCoverage:
    pages = topics_by_objective.get(objective_number, ())
    questions = list_questions_of_objective(course, objective_number)
    cards = [c for c in course.cards.values() if objective_number in c.objectives]
    keys = {k for p in pages for k in p.sources} | {k for q in questions for k in q.sources}
    sources = [course.sources[k] for k in keys if k in course.sources]
    reviewed = [page.reviewed for page in pages if page.reviewed]
    sections = [section for page in pages for section in page.sections]
    pieces = [piece for section in sections for piece in section.pieces]
    return ObjectiveCoverage(
        number=objective_number,
        name=objective_name,
        pages=len(pages),
        words=sum(len(section.plain.split()) for section in sections),
        pictures=sum(_count_pictures(p.html) for p in pieces if isinstance(p, HtmlBlock)),
        calculators=sum(isinstance(p, CalculatorBlock) for p in pieces),
        questions=len(questions),
        questions_by_type=dict(sorted(Counter(q.type for q in questions).items())),
        deeper_questions=sum(q.level == "deeper" for q in questions),
        reserved_questions=sum(q.is_reserved_for_exams for q in questions),
        computed_questions=sum(q.computed is not None for q in questions),
        cards=len(cards),
        glossary_terms=len({term for page in pages for term in page.terms}),
        sources=len(sources),
        sources_by_publisher=dict(Counter(sorted(s.publisher for s in sources)).most_common()),
        oldest_review=min(reviewed, default=None),
    )


def _count_pictures(html: str) -> int:
    """Return the number of figures, and of images outside of figures."""
    outside_figures = re.sub(r"<figure\b.*?</figure>", "", html, flags=re.DOTALL)
    return html.count("<figure") + outside_figures.count("<img ")


def count_exam_questions_by_domain(course: Course) -> Counter[str]:
    domains = map_objectives_to_domains(course)
    return Counter(
        q.find_domain(domains) for q in course.questions.values() if q.may_be_asked_in_exams
    )


def count_disjoint_papers_by_title(course: Course) -> dict[str, int]:
    """Return how many full papers of each mock exam share no question."""
    available = count_exam_questions_by_domain(course)
    return {
        exam.title: min(
            (available[d] // n for d, n in exam.question_count_by_domain.items() if n), default=0
        )
        for exam in course.exams.values()
    }


def _format_cell(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{n} {name}" for name, n in value.items()) or "–"
    return "–" if value is None else str(value)


_SPECIFIC_WORDING = re.compile(r"\d|[A-Z]{2,}|\b(?:only|each|per|because|while|which)\b")


@dataclasses.dataclass(frozen=True, slots=True)
class AnswerCue:
    """How often a rule without knowledge is right, compared with chance (0..1)."""

    cue_description: str
    right_share: float
    chance_share: float
    question_count: int

    @property
    def significance_margin(self) -> float:
        """Twice the standard error of the share at chance level."""
        variance = self.chance_share * (1 - self.chance_share) / max(1, self.question_count)
        return 2 * math.sqrt(variance)

    @property
    def is_significant(self) -> bool:
        return self.right_share - self.chance_share > self.significance_margin


@dataclasses.dataclass(frozen=True, slots=True)
class _SingleAnswerItem:
    stem_words: frozenset[str]
    options: tuple[str, ...]
    right_index: int


_OptionScorer = Callable[[_SingleAnswerItem, int], int]
_SCORER_BY_CUE: Mapping[str, _OptionScorer] = {
    "the longest": lambda item, at: len(item.options[at]),
    "the shortest": lambda item, at: -len(item.options[at]),
    "the first": lambda _, at: -at,
    "the most specific": lambda item, at: len(_SPECIFIC_WORDING.findall(item.options[at])),
    "most words of the stem": lambda item, at: len(
        item.stem_words & _collect_distinct_long_words(item.options[at])
    ),
}


def measure_answer_cues(questions: Iterable[Question]) -> tuple[AnswerCue, ...]:
    """Return how often each cue is right; empty for a bank without choice questions."""
    bank = list(questions)
    items = _list_single_answer_items(q for q in bank if q.type == "single" and not q.computed)
    cues = []
    if items:
        chance = sum(1 / len(item.options) for item in items) / len(items)
        for name, measure in _SCORER_BY_CUE.items():
            right_count = sum(_compute_chance_of_right_pick(item, measure) for item in items)
            cues.append(AnswerCue(name, right_count / len(items), chance, len(items)))
    statements = _list_single_answer_items(q for q in bank if q.type == "true-false")
    if statements:
        answers = [item.options[item.right_index].casefold() for item in statements]
        false_share = sum(answer.startswith("false") for answer in answers) / len(answers)
        cues.append(AnswerCue("always False", false_share, 0.5, len(statements)))
    return tuple(cues)


def _list_single_answer_items(questions: Iterable[Question]) -> list[_SingleAnswerItem]:
    """Return the questions with one right option among several."""
    items = []
    for question in questions:
        options = types.question_type_of(question).options_for_statistics(question.answer)
        right = [index for index, option in enumerate(options) if option.right]
        if len(right) == 1 and len(options) > 1:
            texts = tuple(option.text for option in options)
            items.append(
                _SingleAnswerItem(
                    _collect_distinct_long_words(question.stem.plain), texts, right[0]
                )
            )
    return items


def _collect_distinct_long_words(text: str) -> frozenset[str]:
    return frozenset(w for w in reduce_to_words(text).split() if len(w) > 3)


def _compute_chance_of_right_pick(item: _SingleAnswerItem, score_option: _OptionScorer) -> float:
    """Return the chance of picking the right option among those with the highest score."""
    scores = [score_option(item, index) for index in range(len(item.options))]
    best_indices = [index for index, score in enumerate(scores) if score == max(scores)]
    return (item.right_index in best_indices) / len(best_indices)


_REVIEW_VALID_FOR = dt.timedelta(days=365)
_DUE_SOON = dt.timedelta(days=30)  # how long before its due date a review is listed


@dataclasses.dataclass(frozen=True, slots=True)
class DueContentReview:
    """A page or source to review, with the reason.

    `topic_slug` is the slug of a page, empty for a source. `last_reviewed` is None if it never was.
    """

    name: str
    file_path: str
    topic_slug: str
    last_reviewed: dt.date | None
    reason: str


def list_due_content_reviews(course: Course, today: dt.date) -> list[DueContentReview]:
    """Return pages and sources due for review, longest overdue first, without drafts."""
    due = []
    for page in course.with_drafts().topics.values():
        day, reason = page.reviewed, ""
        if page.status == "review":
            day, reason = None, "waits for a second reader"
        elif page.status == "live":
            reason = _explain_review_due(day, today, "was never reviewed")
        if reason:
            due.append(DueContentReview(page.title, page.place.path, page.slug, day, reason))
    due += [
        DueContentReview(source.key, source.path, "", source.read_on, reason)
        for source in course.sources.values()
        if (reason := _explain_review_due(source.read_on, today, ""))
    ]
    return sorted(due, key=lambda d: (d.last_reviewed or dt.date.min, d.file_path, d.name))


def _explain_review_due(last_reviewed: dt.date | None, today: dt.date, reason_if_never: str) -> str:
    """Return why something last reviewed on `last_reviewed` is due; empty if it is not."""
    if last_reviewed is None:
        return reason_if_never
    due_day = last_reviewed + _REVIEW_VALID_FOR
    if due_day - _DUE_SOON > today:
        return ""
    return f"was due on {due_day}" if due_day < today else f"is due by {due_day}"
