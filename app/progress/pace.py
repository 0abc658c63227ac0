"""How long this learner takes: for a first look, a review, a question, a page."""

import dataclasses
import itertools
from collections.abc import Collection, Iterable, Mapping

from app.content.model import Topic
from app.scheduling.card_pace import LOOK_SECONDS, NEW_SECONDS, CardPace, TimeSpent, shrink_mean

QUESTION_MINUTES = 1.2
"""How long a question takes before the learner's own pace is known."""
ROUND = 3
"""Fewer questions are no round."""
_LONGEST = 6.0  # a page that lay open longer was not read all the time


@dataclasses.dataclass(frozen=True, slots=True)
class StudyPace:
    """Seconds for a card that is begun, a review and a question.

    `page` is the time for a page as a part of the minutes that its length suggests.
    """

    first: float = NEW_SECONDS
    look: float = LOOK_SECONDS
    question: float = QUESTION_MINUTES * 60
    page: float = 1.0

    @property
    def question_minutes(self) -> float:
        """Minutes for a question."""
        return self.question / 60


USUAL = StudyPace()


def pace_of(cards: CardPace, question: TimeSpent, page: TimeSpent) -> StudyPace:
    """The means of the log, drawn to what is usual while there is little of it."""
    return StudyPace(
        first=cards.first,
        look=cards.look,
        question=shrink_mean(question, USUAL.question),
        page=shrink_mean(page, USUAL.page),
    )


def kept_for_questions(room: float, pace: StudyPace) -> float:
    """The minutes of a day that pages leave for a round of questions.

    Where `room` holds no more than two rounds, pages take all of it.
    """
    few = ROUND * pace.question_minutes
    return few if room >= 2 * few else 0.0


def page_spent(read: Iterable[tuple[str, str, int]], topics: Mapping[str, Topic]) -> TimeSpent:
    """How long sections took, each as a part of its minutes.

    `read` are page, section and the moment in milliseconds at which it was marked.
    From one mark to that of the section after it the later one was read.
    """
    marks: dict[str, dict[str, int]] = {}
    for slug, section, at in read:
        marks.setdefault(slug, {})[section] = at
    parts: list[float] = []
    for slug, at_section in marks.items():
        if slug in topics:
            parts += _parts(topics[slug], at_section)
    return TimeSpent(sum(parts), len(parts))


def _parts(topic: Topic, at: Mapping[str, int]) -> Collection[float]:
    found = []
    headed = [section for section in topic.sections if section.anchor]
    for before, section in itertools.pairwise(headed):
        if before.anchor not in at or section.anchor not in at or not section.minutes:
            continue
        passed = (at[section.anchor] - at[before.anchor]) / 60_000
        if 0 < passed <= _LONGEST * section.minutes:
            found.append(passed / section.minutes)
    return found
