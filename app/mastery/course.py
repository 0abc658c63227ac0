"""The course turned around: questions and pages by objective."""

import dataclasses
from collections.abc import Iterable, Mapping

from app.content.live.library import Library
from app.content.model import Topic
from app.mastery.guessing import UNKNOWN, guess_rate
from app.questions.model import Question


@dataclasses.dataclass(frozen=True, slots=True)
class ObjectiveQuestions:
    """The questions of an objective: each with its rate of guessing, and their mean."""

    rates: tuple[tuple[str, float], ...] = ()
    guess: float = UNKNOWN


@dataclasses.dataclass(frozen=True, slots=True)
class CourseByObjective:
    """The course turned around: questions and topics by objective.

    `named` has all that name it, `asked` those of them that an exam may ask; the
    numbers of those `varied` are drawn anew each time.
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
    """The course by objective, turned around once for each state of it."""
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
        key=lambda slug: library.topics[slug].level,  # what lies beyond comes last
    )
    for slug in order:
        for number in library.topics[slug].objectives:
            topics.setdefault(number, []).append(library.topics[slug])
    return CourseByObjective(
        {number: tuple(mine) for number, mine in named.items()},
        {number: _asked(mine, rates) for number, mine in questions.items()},
        {number: tuple(mine) for number, mine in topics.items()},
        {q.id: q.objectives for q in library.questions.values()},
        {slug: frozenset(anchors(topic)) for slug, topic in library.topics.items()},
        rates,
        frozenset(q.id for q in library.questions.values() if q.computed),
    )


def _asked(questions: Iterable[Question], by_item: Mapping[str, float]) -> ObjectiveQuestions:
    rates = tuple((q.id, by_item[q.id]) for q in questions)
    return ObjectiveQuestions(rates, sum(rate for _, rate in rates) / len(rates))


def anchors(topic: Topic) -> tuple[str, ...]:
    """What of a page can be marked as read: its headed sections, or the whole."""
    return tuple(s.anchor for s in topic.sections if s.anchor) or ("",)
