"""What is not live: seen on the author's bench, and by nobody else. Pure."""

import bisect
import dataclasses
from collections.abc import Iterable, Mapping
from typing import TypeVar

from app.content.model import Flashcard, Status, Topic
from app.content.problems import ContentProblem
from app.questions.model import Question

Item = TypeVar("Item", Topic, Question, Flashcard)
_ORDER: tuple[Status, ...] = ("live", "review", "draft")


@dataclasses.dataclass(frozen=True, slots=True)
class CourseWithDrafts:
    """The topics, questions and cards of a course with those that are not live."""

    topics: Mapping[str, Topic]
    questions: Mapping[str, Question]
    cards: Mapping[str, Flashcard]

    @property
    def unfinished(self) -> int:
        """How many topics and items are not live."""
        cards = [c for c in self.cards.values() if not c.is_reverse]
        every = [t.status for t in self.topics.values()]
        every += [q.status for q in self.questions.values()]
        every += [c.status for c in cards]
        return sum(status != "live" for status in every)


NOTHING = CourseWithDrafts({}, {}, {})


def only_live(items: Mapping[str, Item]) -> dict[str, Item]:
    """Those that learners may see."""
    return {name: item for name, item in items.items() if item.status == "live"}


def less_live(one: Status, other: Status) -> Status:
    """An item is as far as its page, where the page is less far."""
    return max(one, other, key=_ORDER.index)


def without_beginnings(
    problems: Iterable[ContentProblem], authored: CourseWithDrafts
) -> list[ContentProblem]:
    """The problems but for W77 in what is not live: there it may stand."""
    drafts = {t.slug for t in authored.topics.values() if t.status != "live"}
    starts: dict[str, list[tuple[int, bool]]] = {}
    items: list[Question | Flashcard] = [
        *authored.questions.values(),
        *authored.cards.values(),
    ]
    for item in items:
        found = starts.setdefault(item.place.path, [])
        found.append((item.place.line, item.status == "live"))
    for found in starts.values():
        found.sort()
    return [
        p
        for p in problems
        if p.code != "W77" or not (_topic(p) in drafts or _is_in_draft(p, starts.get(p.path, [])))
    ]


def _topic(found: ContentProblem) -> str:
    parts = found.path.split("/")
    return parts[1] if len(parts) > 2 else ""


def _is_in_draft(found: ContentProblem, starts: list[tuple[int, bool]]) -> bool:
    """Whether the last item that begins at or above a problem is not live."""
    at = bisect.bisect_right(starts, (found.line, True)) - 1
    return at >= 0 and not starts[at][1]
