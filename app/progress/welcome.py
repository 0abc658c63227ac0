"""What a first visit is told: the exam in three facts, and how an evening is parted."""

import dataclasses
from collections.abc import Sequence

from app.content.live.library import Library
from app.content.model import Domain, ExamBlueprint, Topic
from app.quiz.placement import QUESTION_MINUTES as PLACING_MINUTES
from app.quiz.placement import draw_placement
from app.scheduling import card_seconds


@dataclasses.dataclass(frozen=True, slots=True)
class FirstVisitInfo:
    """The exam, the placement test and the first page.

    `exam` is the mock with the exam's own format, None where a course has none;
    `placement` is how many questions the test has, `minutes` how long it takes; of an
    evening so many minutes are for `cards`, the `rest` for a page and questions.
    """

    exam: ExamBlueprint | None
    domains: Sequence[Domain]
    placement: int
    minutes: float
    first: Topic | None
    cards: float
    rest: float

    @property
    def objectives(self) -> int:
        """How many objectives the domains have together."""
        return sum(len(domain.objectives) for domain in self.domains)

    @property
    def seconds(self) -> int:
        """The time for each question of the exam."""
        return round(60 * self.exam.minutes / self.exam.questions) if self.exam else 0


def welcome_of(
    library: Library, exam: ExamBlueprint | None, minutes: int, seed: str
) -> FirstVisitInfo:
    """What the course says of itself to one who studies `minutes` a day."""
    domains = library.syllabus.domains
    drawn = draw_placement(list(library.questions.values()), domains, {}, seed)
    order = [library.topics[s] for s in library.syllabus.topics if s in library.topics]
    cards = card_seconds(minutes) / 60
    return FirstVisitInfo(
        exam=exam,
        domains=domains,
        placement=len(drawn),
        minutes=len(drawn) * PLACING_MINUTES,
        first=order[0] if order else None,
        cards=cards,
        rest=minutes - cards,
    )
