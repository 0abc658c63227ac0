"""The two routes through the course: every page in full, or the essentials only."""

import dataclasses
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Literal

from app.content.course import Course
from app.markup.model import QuestionBlock, Section, Topic
from app.markup.text import add_boundaries_in_unspaced_scripts, count_words
from app.questions import types
from app.questions.model import Question

ReadingRoute = Literal["full", "short"]
_ANY_WORD = re.compile(r"[^\W_]+(?:[.,]\d+)*")
_MIN_COVERED_WORD_WEIGHT_SHARE = 0.75  # share of the weighed words of a right answer
_STEM_LETTER_COUNT = 6  # letters of a word that are compared, so that “train” matches “training”


def list_sections_on_route(topic: Topic, reading_route: ReadingRoute) -> tuple[Section, ...]:
    """Return the sections of a page that a route reads; none if it skips the page."""
    if reading_route == "full":
        return topic.sections
    return tuple(s for s in topic.sections if s.essential)


def sum_reading_minutes_on_route(topic: Topic, reading_route: ReadingRoute) -> float:
    """Return the minutes that a route spends on a page; 0 if it skips the page."""
    sections = list_sections_on_route(topic, reading_route)
    # A whole page takes the minutes that the plan counts, which are rounded.
    return topic.minutes if sections == topic.sections else sum(s.minutes for s in sections)


def build_page_url(topic: Topic, reading_route: ReadingRoute) -> str:
    """Return the address of a page on a route; in full if the short route skips it."""
    is_short = reading_route == "short" and list_sections_on_route(topic, reading_route)
    return f"/concepts/{topic.slug}{'?route=short' if is_short else ''}"


ESSENTIAL_SHARE = 0.85
"""The part of a page that its essential sections teach; they answer 97% of the course's questions."""


@dataclasses.dataclass(frozen=True, slots=True)
class PageFraction:
    """A part of a page: `share` of what it teaches (0 to 1), and of its essential sections."""

    share: float = 0.0
    essential_share: float = 0.0

    @property
    def is_whole(self) -> bool:
        return self.share > 1 - 1e-6

    @property
    def covers_essential_sections(self) -> bool:
        return self.essential_share > 1 - 1e-6


def map_sections_to_page_fractions(topic: Topic) -> dict[str, PageFraction]:
    """Return which part of a page each of its sections with a heading is, by anchor.

    A page without headings is one section with an empty anchor. If the short route skips a page,
    all of its sections are essential to it.
    """
    essential = {s.anchor: s.essential for s in topic.sections if s.anchor} or {"": True}
    count, all_count = sum(essential.values()), len(essential)
    if count in {0, all_count}:
        return dict.fromkeys(essential, PageFraction(1 / all_count, 1 / all_count))
    parts = {
        True: PageFraction(ESSENTIAL_SHARE / count, 1 / count),
        False: PageFraction((1 - ESSENTIAL_SHARE) / (all_count - count)),
    }
    return {anchor: parts[kind] for anchor, kind in essential.items()}


def are_essential_sections_read(topic: Topic, read_anchors: Collection[str]) -> bool:
    """Return whether every essential section is among the anchors, so that the page counts as read."""
    return all(
        anchor in read_anchors
        for anchor, part in map_sections_to_page_fractions(topic).items()
        if part.essential_share
    )


def has_course_short_route(topics: Iterable[Topic]) -> bool:
    """Return whether a page names its essential sections, so that the routes differ."""
    return any(
        s.essential != topic.sections[0].essential for topic in topics for s in topic.sections
    )


@dataclasses.dataclass(frozen=True, slots=True)
class ShortRouteCoverage:
    """The words of the short route, and how many exam-level questions it covers."""

    word_count: int
    covered_question_count: int
    question_count: int


def measure_short_route_coverage(course: Course) -> ShortRouteCoverage:
    """Count the exam-level questions that the short route covers.

    A question is covered if the essential sections of its page have three quarters of the
    words of its right answer, of those that the page has at all. A word weighs more the
    fewer sections of the course have it: ln(sections / sections with the word).
    """
    topics = course.topics.values()
    weights = _compute_inverse_section_frequencies(topics)
    exam_questions = [
        q for q in course.questions.values() if not q.level and q.topic in course.topics
    ]
    covered = sum(
        _is_answer_on_short_route(q, course.topics[q.topic], weights) for q in exam_questions
    )
    word_count = sum(
        count_words(s.plain) for t in topics for s in list_sections_on_route(t, "short")
    )
    return ShortRouteCoverage(word_count, covered, len(exam_questions))


def list_short_route_questions_without_answer_on_route(course: Course) -> tuple[str, ...]:
    """Return the questions that pages ask on the short route though it folds their answer.

    A question on a page is covered by its essential sections as `measure_short_route_coverage` says. For a
    number, whose digits say little, the section that shares most with the question is essential, too.
    """
    weights = _compute_inverse_section_frequencies(course.topics.values())
    return tuple(
        piece.question
        for topic in course.topics.values()
        for section in list_sections_on_route(topic, "short")
        for piece in section.pieces
        if isinstance(piece, QuestionBlock)
        and piece.question in course.questions
        and not (
            _is_answer_on_short_route(course.questions[piece.question], topic, weights)
            and _is_closest_section_essential_if_numeric(
                course.questions[piece.question], topic, weights
            )
        )
    )


def _is_closest_section_essential_if_numeric(
    question: Question, topic: Topic, weight_by_word: Mapping[str, float]
) -> bool:
    """Return whether the section closest to a numeric question is essential; True for others."""
    if question.type != "numeric":
        return True
    asked = _collect_distinct_word_stems(f"{question.stem.plain} {question.explanation.plain}")
    closest = max(
        topic.sections,
        key=lambda section: _sum_word_weights(
            asked & _collect_distinct_section_words([section]), weight_by_word
        ),
    )
    return closest in list_sections_on_route(topic, "short")


def _is_answer_on_short_route(
    question: Question, topic: Topic, weight_by_word: Mapping[str, float]
) -> bool:
    """Return whether the essential sections of its page have the words of a right answer."""
    right_answers = " ".join(types.question_type_of(question).right_answer_texts(question.answer))
    page_words = frozenset(
        word
        for word in _collect_distinct_section_words(topic.sections)
        if any(map(str.isalpha, word))  # a number may stand on the page by chance
    )
    answer_words = page_words & _collect_distinct_word_stems(
        right_answers
    ) or page_words & _collect_distinct_word_stems(question.stem.plain)
    covered_words = answer_words & _collect_distinct_section_words(
        list_sections_on_route(topic, "short")
    )
    return bool(answer_words) and _sum_word_weights(
        covered_words, weight_by_word
    ) >= _MIN_COVERED_WORD_WEIGHT_SHARE * _sum_word_weights(answer_words, weight_by_word)


def _compute_inverse_section_frequencies(topics: Iterable[Topic]) -> dict[str, float]:
    sections = [
        _collect_distinct_section_words([s]) for topic in topics for s in topic.sections if s.plain
    ]
    counts = Counter(word for words in sections for word in words)
    return {word: math.log(len(sections) / count) for word, count in counts.items()}


def _sum_word_weights(words: Iterable[str], weight_by_word: Mapping[str, float]) -> float:
    return math.fsum(weight_by_word[word] for word in words)


def _collect_distinct_section_words(sections: Iterable[Section]) -> frozenset[str]:
    return frozenset().union(
        *(_collect_distinct_word_stems(f"{s.title} {s.plain}") for s in sections if s.plain)
    )


def _collect_distinct_word_stems(text: str) -> frozenset[str]:
    """Return the words of more than two letters, cut to their first letters, and the numbers."""
    words = _ANY_WORD.findall(add_boundaries_in_unspaced_scripts(text.lower()))
    return frozenset(
        w[:_STEM_LETTER_COUNT] if w.isalpha() else w
        for w in words
        if len(w) > 2 or w.isdigit() or add_boundaries_in_unspaced_scripts(w) != w
    )
