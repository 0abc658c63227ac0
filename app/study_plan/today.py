"""Today's plan: the next step, and what else fits into today."""

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from app.content.library import Library
from app.markup.model import Topic
from app.mastery.objectives import (
    DomainMastery,
    LearnerEvidence,
    WeakPrerequisite,
    never_missed,
    readable_anchors,
    weakest_prerequisite,
)
from app.mastery.question_counts import (
    WeakObjective,
    questions_of_objective,
    questions_of_topic,
    weakest_first,
)
from app.mastery.store import PageProgress
from app.study_plan.calendar import (
    PLACEMENT_QUESTION_MINUTES,
    ROUND,
    USUAL,
    MockExamOption,
    OpenPlacementTest,
    OpenPracticeRun,
    OpenSitting,
    StudyPace,
    StudyStep,
    TodayInputs,
    TodayPlan,
    minutes_for_questions,
)
from app.study_plan.card_plan import CardsLeft
from app.web.formatting import format_count


def reading_step(now: TodayInputs) -> StudyStep | None:
    """Return the page left open, or the next one in course order without a weak prerequisite.

    If nothing on the weakest objective was read and it depends on a weak page with something left
    to read, that page comes first. Pages on which every answer so far was right come after all
    others, those on well-known objectives later, and those beyond the exam last. If every page left
    has a weak prerequisite, the prerequisite comes first.
    """
    library, record = now.library, now.record
    begun = library.topics.get(now.last_topic)
    going_on = _next_reading_step(begun, record) if begun else None
    if going_on is not None:
        return going_on
    urgent = _most_urgent_objective(library, record, now.domains)
    ground = urgent.ground if urgent is not None else None
    if urgent is not None and ground and _next_reading_step(ground.topic, record):
        return prerequisite_step(ground, urgent.topic, record)
    needed: StudyStep | None = None
    for topic in reading_order(library, record, now.domains, is_short=now.is_short):
        step = _next_reading_step(topic, record)
        if step is None:
            continue
        ground = weakest_prerequisite(library, record, topic)
        if ground is None:
            return step
        needed = needed or prerequisite_step(ground, topic, record)
    return needed


def reading_steps(now: TodayInputs) -> Iterator[StudyStep]:
    """Yield the next page, then the later ones that the exam covers, in order."""
    first = reading_step(now)
    if first is None:
        return
    yield first
    library, record = now.library, now.record
    for topic in reading_order(library, record, now.domains, is_short=now.is_short):
        step = _next_reading_step(topic, record)
        if step is not None and topic.slug != first.topic and not topic.level:
            yield step


def reading_order(
    library: Library,
    record: LearnerEvidence,
    domains: Sequence[DomainMastery],
    *,
    is_short: bool = False,
) -> list[Topic]:
    """Return the pages of the course in the order to read them.

    The page on the weakest objective comes first if nothing on it was read; pages on well-known
    objectives come last. If time `is_short`, the first page of every objective comes before the
    second of any, even if the few answers so far were right, so that no whole domain is left out.
    """
    known, urgent = _known_well(domains), _most_urgent_objective(library, record, domains)
    order = [library.topics[s] for s in library.syllabus.topics if s in library.topics]
    rounds = _page_rounds(order) if is_short else {}
    order.sort(
        key=lambda topic: (
            urgent is None or topic != urgent.topic,
            topic.level,
            known.issuperset(topic.objectives),
            rounds.get(topic.slug, 0),
            never_missed(library, record, topic.objectives),
        )
    )
    return order


def _most_urgent_objective(
    library: Library, record: LearnerEvidence, domains: Sequence[DomainMastery]
) -> WeakObjective | None:
    """Return the weakest objective if it was tested low and nothing on it was read."""
    weak = next(iter(weakest_first(library, record, domains)), None)
    return weak if weak and weak.low and not weak.standing.pages.read else None


def _page_rounds(order: Iterable[Topic]) -> dict[str, int]:
    """Return how many pages of the same objective come before each page."""
    before: collections.Counter[str] = collections.Counter()
    found = {}
    for topic in order:
        of = topic.objectives[0] if topic.objectives else ""
        found[topic.slug] = before[of]
        before[of] += 1
    return found


def minutes_left(topic: Topic, record: LearnerEvidence) -> float:
    """Return the minutes of a page that are not read yet."""
    step = _next_reading_step(topic, record)
    return step.minutes if step else 0.0


def minutes_read(pages: Iterable[PageProgress], library: Library, since: int) -> float:
    """Return the minutes of sections marked as read at or after `since` (ms)."""
    return sum(
        _section_minutes(library.topics[page.topic], section)
        for page in pages
        if page.at >= since and page.topic in library.topics
        for section, at in page.sections.items()
        if at >= since
    )


def _section_minutes(topic: Topic, section: str) -> float:
    if not section:
        return topic.minutes
    return next((s.minutes for s in topic.sections if s.anchor == section), 0.0)


def _known_well(domains: Iterable[DomainMastery]) -> frozenset[str]:
    """Return the objectives that answers show to be known."""
    return frozenset(
        standing.objective.number
        for domain in domains
        for standing in domain.standings
        if standing.known
    )


def _next_reading_step(topic: Topic, record: LearnerEvidence) -> StudyStep | None:
    read = frozenset(record.read.get(topic.slug, ()))
    left = [a for a in readable_anchors(topic) if a not in read]
    if not left:
        return None
    address = f"/concepts/{topic.slug}"
    sections = {s.anchor: s for s in topic.sections}
    if not any(a in read for a in readable_anchors(topic)):
        goal = "objective" if len(topic.objectives) == 1 else "objectives"
        reason = f"{goal} {', '.join(topic.objectives)}, not read yet"
        slug = topic.slug
        return StudyStep("read", topic.title, address, reason, topic.minutes, slug)
    following = sections[left[0]]
    reason = f"continue at section {following.number}, {following.title}"
    minutes = sum(sections[a].minutes for a in left)
    place = f"{address}#{following.anchor}"
    return StudyStep("continue", topic.title, place, reason, minutes, topic.slug)


def prerequisite_step(ground: WeakPrerequisite, topic: Topic, record: LearnerEvidence) -> StudyStep:
    """Return the step to study a weak prerequisite before the topic that depends on it."""
    needed = ground.topic
    reason = f"first this: {topic.title} builds on it, and {ground.why}"
    again = _next_reading_step(needed, record)
    if again is not None:
        return dataclasses.replace(again, reason=reason)
    slug = needed.slug
    address = f"/concepts/{slug}"
    return StudyStep("read", needed.title, address, reason, needed.minutes, slug)


_MAX_SHARE = 0.5
_ALL = 0.95  # the count comes from a sample, so nearly all means all


@dataclasses.dataclass(frozen=True, slots=True)
class QueueCounter:
    """How many cards of a kind are left; `here` marks the kind of the current card."""

    name: str
    count: int
    here: bool = False


def queue_counters(left: CardsLeft, kind: str = "") -> tuple[QueueCounter, ...]:
    """Return new, learning and due cards left; `kind` is that of the current card.

    The counts match those of `describe_cards_left`, and together they are all cards left.

    >>> [c.count for c in queue_counters(CardsLeft(due=7, waiting=2, fresh=15, learning=1))]
    [15, 3, 6]
    """
    due = "Once more" if left.final else "Due"
    return (
        QueueCounter("New", left.fresh, kind == "new"),
        QueueCounter("Learning", left.steps, kind == "learning"),
        QueueCounter(due, left.reviews, kind == "due"),
    )


def describe_cards_left(left: CardsLeft) -> str:
    r"""Return a list of the kinds of cards left, in words; empty if there are none.

    >>> describe_cards_left(CardsLeft(due=7, waiting=2, fresh=15, learning=1))
    '6\xa0reviews, 15\xa0new cards, 3\xa0still being learned'
    """
    said = []
    if left.reviews and left.final:
        said.append(f"{left.reviews:,}\N{NO-BREAK SPACE}to see once more")
    elif left.reviews:
        said.append(format_count(left.reviews, "review"))
    if left.fresh:
        said.append(format_count(left.fresh, "new card"))
    if left.steps:
        said.append(f"{left.steps:,}\N{NO-BREAK SPACE}still being learned")
    return ", ".join(said)


def over_words(over: int, passed: int) -> str:
    r"""Return a sentence about the backlog; empty if there is none.

    The plan reviews `passed` of the `over` cards on no day before the exam.

    >>> over_words(3, 0).replace("\xa0", " ")
    '3 more cards are due and wait for another day'
    >>> over_words(3, 1).replace("\xa0", " ")
    '3 more cards are due; the plan has no time for about 1 of them before your exam'
    >>> over_words(138, 126).replace("\xa0", " ")
    '138 more cards are due; the plan has no time for most of them before your exam'
    >>> over_words(1, 1).replace("\xa0", " ")
    '1 more card is due; the plan has no time for it before your exam'
    """
    if not over:
        return ""
    one = over == 1
    due = f"{format_count(over, 'more card')} {'is' if one else 'are'} due"
    if not passed:
        return f"{due} and {'waits' if one else 'wait'} for another day"
    if passed >= _ALL * over:
        whom = "it" if one else "them"
    elif passed > _MAX_SHARE * over:
        whom = "most of them"
    else:
        whom = f"about {passed:,} of them"
    return f"{due}; the plan has no time for {whom} before your exam"


_MAX_STEPS = 10


def plan_today(now: TodayInputs) -> TodayPlan:
    """Return today's steps in the order to take them; empty if nothing is left.

    A mock exam in progress comes first, because its clock runs. Then the rest of a placement test,
    on which everything else depends; then cards due or added, which are forgotten in the meantime;
    then the day's mock exam; then reading and practice. New cards follow the due ones; if none is
    due they come last, and only after something was read or answered.

    The next step is always offered however long it takes, and so is a mock exam. Of the others,
    only those that fit are. Cards get the minutes first, then as many pages as the study plan
    wants, leaving a round of questions. An unfinished practice run comes before a new round.
    """
    started = any(s.started for d in now.domains for s in d.standings)
    asked = bool(now.left.due or now.left.added)
    cards = cards_step(now.left) if started or asked else None
    waits = not asked and not now.mock
    pages = list(reading_steps(now))
    page = pages[0] if pages else None
    day = _TodayBuilder(now.minutes, now.pace)
    day.take(running_step(now.running))
    day.take(placing_step(now.placing))
    day.take(None if waits else cards)
    day.take(mock_step(now.mock))
    day.take(page)
    day.take(cards)
    day.read_on(page, pages[1:], now.reading)
    begun = run_step(now.left_run, now.pace)
    day.take(begun)
    if begun is None or begun in day.steps or now.running is not None:
        day.take(practice_step(now.library, now.record, now.domains, now.pace, page))
    if waits:
        day.steps.sort(key=lambda step: step.kind in {"learn", "review"})
    return TodayPlan(tuple(day.steps), tuple(day.beyond))


class _TodayBuilder:
    """Collects the steps that fit, those that do not, and the minutes left."""

    def __init__(self, minutes: float, pace: StudyPace) -> None:
        self.steps: list[StudyStep] = []
        self.beyond: list[StudyStep] = []
        self._left = minutes
        self._pace = pace

    def take(self, step: StudyStep | None) -> None:
        """Add a step, or the part of it that fits. A page is added only once."""
        known = {one.address for one in (*self.steps, *self.beyond)}
        if step is None or step.address in known:
            return
        if self.steps and step.minutes > self._left and step.kind != "mock":
            shorter = _shorten_step(step, self._left, self._pace)
            if shorter is None:
                self.beyond.append(step)
                return
            step = shorter
        self.steps.append(step)
        self._left -= step.minutes

    def read_on(self, first: StudyStep | None, pages: Iterable[StudyStep], wanted: float) -> None:
        """Add whole pages after the first, up to the minutes `wanted`."""
        if first is None or first not in self.steps:
            return
        kept = minutes_for_questions(self._left + first.minutes, self._pace)
        wanted -= first.minutes
        for page in pages:
            if wanted <= 0 or page.minutes > self._left - kept:
                return
            self.take(page)
            wanted -= page.minutes


def _shorten_step(step: StudyStep, minutes: float, pace: StudyPace) -> StudyStep | None:
    """Return the part of a step that fits into the minutes; None if hardly any does.

    That is a shorter round of questions, or some of the new cards.
    """
    if step.kind == "learn":
        return _shorten_card_step(step, minutes)
    count = int(minutes / pace.question_minutes)
    if step.kind != "practice" or count < ROUND:
        return None
    _, _, topic = step.title.partition(": ")
    return dataclasses.replace(
        step,
        title=f"{count} questions: {topic}",
        address=f"{step.address}?count={count}",
        minutes=count * pace.question_minutes,
        questions=count,
    )


def running_step(running: OpenSitting | None) -> StudyStep | None:
    """Return the step for the mock exam in progress."""
    if running is None:
        return None
    return StudyStep(
        "exam",
        running.title,
        f"/exams/sittings/{running.number}/review",
        "the clock is running",
        running.minutes,
    )


def mock_step(mock: MockExamOption | None) -> StudyStep | None:
    if mock is None:
        return None
    reason = "planned for today: take all its time at once"
    return StudyStep("mock", mock.title, f"/exams/{mock.exam}", reason, mock.minutes)


def placing_step(placing: OpenPlacementTest | None) -> StudyStep | None:
    """Return the step for the rest of a placement test."""
    if placing is None:
        return None
    return StudyStep(
        "place",
        f"Placement test: {_questions_left_text(placing.left)}",
        f"/quiz/runs/{placing.run}",
        "it shows which pages to read first",
        placing.left * PLACEMENT_QUESTION_MINUTES,
    )


def run_step(left: OpenPracticeRun | None, pace: StudyPace) -> StudyStep | None:
    """Return the step for the unfinished practice run, which Practice proposes as well."""
    if left is None:
        return None
    return StudyStep(
        "run",
        f"Practice: {_questions_left_text(left.left)}",
        f"/quiz/runs/{left.run}",
        f"you stopped after {left.count - left.left} of {left.count}",
        left.left * pace.question_minutes,
        questions=left.left,
    )


def _questions_left_text(questions: int) -> str:
    """Return how many questions of a run or a test are left, in words."""
    return f"{questions} {'question' if questions == 1 else 'questions'} left"


def cards_step(left: CardsLeft) -> StudyStep | None:
    """Return the step for the review queue; None while all its cards wait for a later time."""
    if not left.due and not left.fresh:
        return None
    reason = describe_cards_left(left)
    noun = "card" if left.cards == 1 else "cards"
    minutes = left.seconds / 60
    if left.returning or left.added:
        verb = "Study" if left.fresh else "Review"
        title = f"{verb} {left.cards:,} {noun}"
        return StudyStep("review", title, "/flashcards", reason, minutes)
    title = f"Learn {left.cards:,} new {noun}"
    return StudyStep("learn", title, "/flashcards", "no card is due", minutes, fresh=left.fresh)


def _shorten_card_step(step: StudyStep, minutes: float) -> StudyStep | None:
    """Return the step with as many new cards as fit into the minutes."""
    count = int(minutes / CardsLeft(fresh=1).seconds * 60)
    if count < 1:
        return None
    title = step.title.replace("Learn ", f"Learn {count} of ", 1)
    return dataclasses.replace(
        step, title=title, minutes=CardsLeft(fresh=count).seconds / 60, fresh=count
    )


def practice_step(
    library: Library,
    record: LearnerEvidence,
    domains: Iterable[DomainMastery],
    pace: StudyPace = USUAL,
    page: StudyStep | None = None,
) -> StudyStep | None:
    """Return practice on the weakest objective; None if no question is worth answering.

    If it was tested and has a weak prerequisite, that comes first. If hardly anything was tested or
    read, the practice is on the day's `page`.
    """
    order = weakest_first(library, record, domains)
    if not order or order[0].asked_out:
        return None
    first = order[0]
    if first.low and first.ground is not None:
        return prerequisite_step(first.ground, first.topic, record)
    if page is not None and not first.tested and not first.standing.pages.read:
        first = _weakness_of_page(library, order, page.topic) or first
    return _practice_questions_step(library, first, pace)


def _weakness_of_page(
    library: Library, order: Iterable[WeakObjective], slug: str
) -> WeakObjective | None:
    """Return the objective of a page that is hardly tested, or None."""
    topic = library.topics[slug]
    found = (w for w in order if topic in w.standing.topics and not w.tested)
    weak = next(found, None) if topic.questions else None
    return dataclasses.replace(weak, topic=topic) if weak else None


def _practice_questions_step(library: Library, weak: WeakObjective, pace: StudyPace) -> StudyStep:
    """Return a practice step: all pages of a weak objective, otherwise one page.

    Questions reserved for exams are left out.
    """
    topic, goal = weak.topic, weak.standing.objective
    questions = questions_of_topic(library, topic.slug)
    title, address = topic.title, f"/quiz/{topic.slug}"
    if weak.low:
        questions = questions_of_objective(library, goal.number)
        title, address = goal.name, f"/quiz/objectives/{goal.number}"
    open_ = sum(not question.reserved for question in questions)
    count = min(open_ or len(questions), _MAX_STEPS)
    words = "1 question" if count == 1 else f"{count} questions"
    return StudyStep(
        "practice",
        f"{words}: {title}",
        address,
        f"objective {weak.standing.objective.number}, {weak.why}",
        count * pace.question_minutes,
        questions=count,
        objective=weak.standing.objective.name,
    )
