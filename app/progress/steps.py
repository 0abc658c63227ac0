"""What to do today: one next thing and why, and what else the minutes hold."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from app.content.live.library import Library
from app.content.model import Topic
from app.flashcards.left_words import made_of
from app.mastery.course import anchors
from app.mastery.grounds import Ground, weak_ground
from app.mastery.standing import DomainStanding, Record
from app.mastery.weakest import Weak, weakest_first
from app.progress.pace import USUAL, Pace
from app.quiz.placement import QUESTION_MINUTES as PLACING_MINUTES
from app.scheduling import Left
from app.scheduling.card_pace import whole_minutes

_ROUND = 10
_LEAST = 3  # fewer questions are no round

Kind = Literal[
    "exam", "place", "review", "learn", "mock", "read", "continue", "practice"
]


@dataclasses.dataclass(frozen=True, slots=True)
class Placing:
    """A placement test that was begun: its run, and how many questions are open."""

    run: int
    left: int


@dataclasses.dataclass(frozen=True, slots=True)
class Running:
    """A mock exam whose clock runs, and the minutes on it."""

    number: int
    title: str
    minutes: float


@dataclasses.dataclass(frozen=True, slots=True)
class Mock:
    """A mock exam that can be sat, under its name in addresses."""

    title: str
    minutes: int
    exam: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Situation:
    """All that a plan is made from.

    `left` are the cards on the desk, `minutes` those left of today; `mock` is the mock
    exam that the plan of days has today, `pace` how long a question takes.
    """

    library: Library
    record: Record
    domains: Sequence[DomainStanding]
    left: Left
    last_topic: str = ""
    minutes: float = 30.0
    running: Running | None = None
    placing: Placing | None = None
    mock: Mock | None = None
    pace: Pace = USUAL


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """One thing to do, why, and how long it takes in minutes.

    A page is that of `topic`; of questions there are so many, on `objective`. Of new
    cards, where none is due, there are `fresh`.
    """

    kind: Kind
    title: str
    address: str
    reason: str
    minutes: float
    topic: str = ""
    questions: int = 0
    objective: str = ""
    fresh: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class TodayPlan:
    """The steps that fit into today, the next one first; `beyond` do not fit."""

    steps: tuple[Step, ...]
    beyond: tuple[Step, ...]

    @property
    def minutes(self) -> int:
        """How long the steps take: the sum of what is shown beside them."""
        return sum(whole_minutes(step.minutes) for step in self.steps)


def plan(now: Situation) -> TodayPlan:
    """The steps of today in the order to take them; none when nothing is left.

    A running exam comes before everything: its clock does not wait. Then the rest of
    a placement test, from which all else follows; then cards due,
    which are forgotten while one does other things; then the mock exam of a day that
    has one; then reading and practice. New
    cards follow those due on the desk; where none is due they come last, and not
    before something was read or answered. The next thing is
    offered however long it takes, and so is a mock exam; of the others, those that the
    minutes still hold.
    """
    started = any(s.started for d in now.domains for s in d.standings)
    found = (
        running_step(now.running),
        placing_step(now.placing),
        cards_step(now.left) if now.left.due or (now.mock and started) else None,
        mock_step(now.mock),
        reading_step(now),
        practice_step(now.library, now.record, now.domains, now.pace),
        cards_step(now.left) if started and not now.left.due else None,
    )
    left = now.minutes
    steps: list[Step] = []
    beyond: list[Step] = []
    for step in _different(found):
        if steps and step.minutes > left and step.kind != "mock":
            shorter = _shorter(step, left, now.pace)
            if shorter is None:
                beyond.append(step)
                continue
            step = shorter  # noqa: PLW2901 - the same step, cut to what is left
        steps.append(step)
        left -= step.minutes
    return TodayPlan(tuple(steps), tuple(beyond))


def _shorter(step: Step, minutes: float, pace: Pace) -> Step | None:
    """As much of a step as the minutes hold; None when it is hardly any.

    A round of fewer questions, or some of the new cards.
    """
    if step.kind == "learn":
        return _some_of(step, minutes)
    count = int(minutes / pace.question_minutes)
    if step.kind != "practice" or count < _LEAST:
        return None
    _, _, topic = step.title.partition(": ")
    return dataclasses.replace(
        step,
        title=f"{count} questions: {topic}",
        minutes=count * pace.question_minutes,
        questions=count,
    )


def _different(found: Iterable[Step | None]) -> Iterator[Step]:
    """Each step once: two reasons may lead to the same page."""
    seen: set[str] = set()
    for step in found:
        if step is not None and step.address not in seen:
            seen.add(step.address)
            yield step


def running_step(running: Running | None) -> Step | None:
    """The exam whose clock runs."""
    if running is None:
        return None
    return Step(
        "exam",
        running.title,
        f"/exams/sittings/{running.number}/review",
        "the clock is running",
        running.minutes,
    )


def mock_step(mock: Mock | None) -> Step | None:
    """The mock exam of the day."""
    if mock is None:
        return None
    reason = "planned for today: take all its time at once"
    return Step("mock", mock.title, f"/exams/{mock.exam}", reason, mock.minutes)


def placing_step(placing: Placing | None) -> Step | None:
    """The rest of a placement test."""
    if placing is None:
        return None
    noun = "question" if placing.left == 1 else "questions"
    return Step(
        "place",
        f"Placement test: {placing.left} {noun} left",
        f"/quiz/runs/{placing.run}",
        "it shows which pages to read first",
        placing.left * PLACING_MINUTES,
    )


def cards_step(left: Left) -> Step | None:
    """The cards that the desk holds, in its number; none while all wait for a time."""
    if not left.due and not left.fresh:
        return None
    noun = "card" if left.cards == 1 else "cards"
    minutes = left.seconds / 60
    if left.returning:
        verb = "Study" if left.fresh else "Review"
        title = f"{verb} {left.cards:,} {noun}"
        return Step("review", title, "/flashcards", _made_of(left), minutes)
    title = f"Learn {left.cards:,} new {noun}"
    return Step(
        "learn", title, "/flashcards", "no card is due", minutes, fresh=left.fresh
    )


def _made_of(left: Left) -> str:
    """What the cards of the day are, and how many more would be due."""
    if not left.over:
        return made_of(left)
    wait = "waits" if left.over == 1 else "wait"
    return f"{made_of(left)}; {left.over:,} more {wait} for another day"


def _some_of(step: Step, minutes: float) -> Step | None:
    """As many new cards of a day as the minutes hold, beside their number."""
    count = int(minutes / Left(fresh=1).seconds * 60)
    if count < 1:
        return None
    title = step.title.replace("Learn ", f"Learn {count} of ", 1)
    return dataclasses.replace(
        step, title=title, minutes=Left(fresh=count).seconds / 60, fresh=count
    )


def reading_step(now: Situation) -> Step | None:
    """The page left open, or the next in the order of the course that stands well.

    Pages whose objectives were all answered rightly so far come after all others,
    those on what is known well later, and what lies beyond the exam last. Where every
    page left rests on something weak, that comes first.
    """
    library, record = now.library, now.record
    begun = library.topics.get(now.last_topic)
    going_on = _reading(begun, record) if begun else None
    if going_on is not None:
        return going_on
    needed: Step | None = None
    for topic in reading_order(library, record, now.domains):
        step = _reading(topic, record)
        if step is None:
            continue
        ground = weak_ground(library, record, topic)
        if ground is None:
            return step
        needed = needed or _first(ground, topic, record)
    return needed


def reading_order(
    library: Library, record: Record, domains: Iterable[DomainStanding]
) -> list[Topic]:
    """The pages of the course in the order in which they are worth reading."""
    known, shown = _known_well(domains), _never_missed(library, record)
    order = [library.topics[s] for s in library.syllabus.topics if s in library.topics]
    order.sort(
        key=lambda topic: (
            topic.level,
            known.issuperset(topic.objectives),
            shown.issuperset(topic.objectives),
        )
    )
    return order


def minutes_left(topic: Topic, record: Record) -> float:
    """The minutes of a page that are not read yet."""
    step = _reading(topic, record)
    return step.minutes if step else 0.0


def _known_well(domains: Iterable[DomainStanding]) -> frozenset[str]:
    """The objectives that answers show to be known."""
    return frozenset(
        standing.objective.number
        for domain in domains
        for standing in domain.standings
        if standing.known
    )


def _never_missed(library: Library, record: Record) -> frozenset[str]:
    """The objectives that were answered, and every time rightly at first."""
    right: set[str] = set()
    wrong: set[str] = set()
    for item, first in record.firsts.items():
        question = library.questions.get(item)
        if question is not None:
            (right if first.score >= 1 else wrong).update(question.objectives)
    return frozenset(right - wrong)


def _reading(topic: Topic, record: Record) -> Step | None:
    read = frozenset(record.read.get(topic.slug, ()))
    left = [a for a in anchors(topic) if a not in read]
    if not left:
        return None
    address = f"/concepts/{topic.slug}"
    sections = {s.anchor: s for s in topic.sections}
    if not any(a in read for a in anchors(topic)):
        goal = "objective" if len(topic.objectives) == 1 else "objectives"
        reason = f"{goal} {', '.join(topic.objectives)}, not read yet"
        slug = topic.slug
        return Step("read", topic.title, address, reason, topic.minutes, slug)
    following = sections[left[0]]
    reason = f"continue at section {following.number}, {following.title}"
    minutes = sum(sections[a].minutes for a in left)
    place = f"{address}#{following.anchor}"
    return Step("continue", topic.title, place, reason, minutes, topic.slug)


def _first(ground: Ground, topic: Topic, record: Record) -> Step:
    """Go over a weak prerequisite before the topic that rests on it."""
    needed = ground.topic
    reason = f"first this: {topic.title} builds on it, and {ground.why}"
    again = _reading(needed, record)
    if again is not None:
        return dataclasses.replace(again, reason=reason)
    slug = needed.slug
    address = f"/concepts/{slug}"
    return Step("read", needed.title, address, reason, needed.minutes, slug)


def practice_step(
    library: Library,
    record: Record,
    domains: Iterable[DomainStanding],
    pace: Pace = USUAL,
) -> Step | None:
    """The weakest objective, as practice orders them; none when all is answered.

    If it was tested and rests on something weak, that comes first.
    """
    order = weakest_first(library, record, domains)
    if not order or order[0].asked_out:
        return None
    first = order[0]
    if first.low and first.ground is not None:
        return _first(first.ground, first.topic, record)
    return _practice(first, pace)


def _practice(weak: Weak, pace: Pace) -> Step:
    topic = weak.topic
    count = min(len(topic.questions), _ROUND)
    words = "1 question" if count == 1 else f"{count} questions"
    return Step(
        "practice",
        f"{words}: {topic.title}",
        f"/quiz/{topic.slug}",
        f"objective {weak.standing.objective.number}, {weak.why}",
        count * pace.question_minutes,
        questions=count,
        objective=weak.standing.objective.name,
    )
