"""The two routes through the course: every page in full, or the essentials only."""

import dataclasses
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal

from app.content.library import Library
from app.markup.model import Section, Topic
from app.questions import types
from app.questions.model import Question

Route = Literal["full", "short"]
_WORD = re.compile(r"[a-z0-9]+(?:[.,]\d+)*")
_STEM = 6  # letters of a word that are compared, so that “train” matches “training”


def route_sections(topic: Topic, route: Route) -> tuple[Section, ...]:
    """Return the sections of a page that a route reads; none if it skips the page."""
    if route == "full":
        return topic.sections
    return tuple(s for s in topic.sections if s.essential)


def route_minutes(topic: Topic, route: Route) -> float:
    """Return the minutes that a route spends on a page; 0 if it skips the page."""
    return sum(s.minutes for s in route_sections(topic, route))


def has_short_route(topics: Iterable[Topic]) -> bool:
    """Return whether a page names its essential sections, so that the routes differ."""
    return any(
        s.essential != topic.sections[0].essential for topic in topics for s in topic.sections
    )


def count_words(sections: Iterable[Section]) -> int:
    """Return the number of words in the text of sections, without their questions."""
    return sum(len(s.plain.split()) for s in sections)


@dataclasses.dataclass(frozen=True, slots=True)
class RouteCoverage:
    """The words of the short route, and how many exam-level questions it covers."""

    words: int
    covered: int
    questions: int


def measure_short_route(library: Library) -> RouteCoverage:
    """Count a question as covered if the section that it belongs to is essential."""
    sections = {
        (topic.slug, s.anchor)
        for topic in library.topics.values()
        for s in route_sections(topic, "short")
    }
    matches = match_sections(library)
    return RouteCoverage(
        sum(count_words(route_sections(t, "short")) for t in library.topics.values()),
        sum((library.questions[q].topic, anchor) in sections for q, anchor in matches.items()),
        len(matches),
    )


def match_sections(library: Library) -> dict[str, str]:
    """Return the anchor of the section that each exam-level question belongs to.

    A question belongs to the section of its topic's page with most of the words in its
    right answer, or in its stem if the page has none of these. A word weighs more the fewer sections of the course have
    it: ln(sections / sections with the word). The later one of two equal sections wins,
    because pages end with a summary.
    """
    words = {
        (topic.slug, section.anchor): _distinct_words(f"{section.title} {section.plain}")
        for topic in library.topics.values()
        for section in topic.sections
        if section.plain
    }
    counts = Counter(word for found in words.values() for word in found)
    weights = {word: math.log(len(words) / count) for word, count in counts.items()}
    return {
        question.id: _best_section(question, topic, words, weights)
        for question in library.questions.values()
        if not question.level and (topic := library.topics.get(question.topic))
    }


def _best_section(
    question: Question,
    topic: Topic,
    words: Mapping[tuple[str, str], frozenset[str]],
    weights: Mapping[str, float],
) -> str:
    page = frozenset().union(*(words.get((topic.slug, s.anchor), ()) for s in topic.sections))
    right = " ".join(types.type_of(question).right_words(question.answer))
    asked = page & _distinct_words(right) or page & _distinct_words(question.stem.plain)
    best, most = "", -1.0
    for section in topic.sections:
        shared = asked & words.get((topic.slug, section.anchor), frozenset())
        weight = sum(weights[word] for word in sorted(shared))
        if section.plain and weight >= most:
            best, most = section.anchor, weight
    return best


def _distinct_words(text: str) -> frozenset[str]:
    """Return the words of more than two letters, cut to their first letters, and the numbers."""
    found = _WORD.findall(text.lower())
    return frozenset(w[:_STEM] if w.isalpha() else w for w in found if len(w) > 2 or w.isdigit())
