"""What to do today: one next thing and why, and what else the minutes hold."""

import dataclasses
from collections.abc import Iterable

from app.content.live.library import Library
from app.flashcards.left_words import describe_cards_left
from app.mastery.bank import of_objective, of_topic
from app.mastery.standing import DomainMastery, LearnerEvidence
from app.mastery.weakest import WeakObjective, weakest_first
from app.progress.pace import ROUND, USUAL, StudyPace, kept_for_questions
from app.progress.reading import first_this, reading_steps
from app.progress.situation import (
    MockExamOption,
    OpenPlacementTest,
    OpenPracticeRun,
    OpenSitting,
    StudyStep,
    TodayInputs,
    TodayPlan,
)
from app.quiz.placement import QUESTION_MINUTES as PLACING_MINUTES
from app.scheduling import CardsLeft

_MOST = 10


def plan_today(now: TodayInputs) -> TodayPlan:
    """The steps of today in the order to take them; none when nothing is left.

    A running exam comes before everything: its clock does not wait. Then the rest of
    a placement test, from which all else follows; then cards due or added,
    which are forgotten while one does other things; then the mock exam of a day that
    has one; then reading and practice. New
    cards follow those on the desk; where there is none they come last, and not
    before something was read or answered.

    The next thing is offered however long it takes, and so is a mock exam; of the
    others, those that the minutes still hold. Cards have them first, then as many
    pages as the plan of days wants, which leave a round of questions; a practice run
    that was left comes before a new round.
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
    """The steps that were taken so far, those that do not fit, the minutes left."""

    def __init__(self, minutes: float, pace: StudyPace) -> None:
        self.steps: list[StudyStep] = []
        self.beyond: list[StudyStep] = []
        self._left = minutes
        self._pace = pace

    def take(self, step: StudyStep | None) -> None:
        """Take a step, or what fits of it. Two reasons may lead to the same page."""
        known = {one.address for one in (*self.steps, *self.beyond)}
        if step is None or step.address in known:
            return
        if self.steps and step.minutes > self._left and step.kind != "mock":
            shorter = _shorter(step, self._left, self._pace)
            if shorter is None:
                self.beyond.append(step)
                return
            step = shorter
        self.steps.append(step)
        self._left -= step.minutes

    def read_on(self, first: StudyStep | None, pages: Iterable[StudyStep], wanted: float) -> None:
        """Take more pages after the first, whole ones, up to the minutes `wanted`."""
        if first is None or first not in self.steps:
            return
        kept = kept_for_questions(self._left + first.minutes, self._pace)
        wanted -= first.minutes
        for page in pages:
            if wanted <= 0 or page.minutes > self._left - kept:
                return
            self.take(page)
            wanted -= page.minutes


def _shorter(step: StudyStep, minutes: float, pace: StudyPace) -> StudyStep | None:
    """As much of a step as the minutes hold; None when it is hardly any.

    A round of fewer questions, or some of the new cards.
    """
    if step.kind == "learn":
        return _some_of(step, minutes)
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
    """The exam whose clock runs."""
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
    """The mock exam of the day."""
    if mock is None:
        return None
    reason = "planned for today: take all its time at once"
    return StudyStep("mock", mock.title, f"/exams/{mock.exam}", reason, mock.minutes)


def placing_step(placing: OpenPlacementTest | None) -> StudyStep | None:
    """The rest of a placement test."""
    if placing is None:
        return None
    return StudyStep(
        "place",
        f"Placement test: {_left(placing.left)}",
        f"/quiz/runs/{placing.run}",
        "it shows which pages to read first",
        placing.left * PLACING_MINUTES,
    )


def run_step(left: OpenPracticeRun | None, pace: StudyPace) -> StudyStep | None:
    """The rest of the practice run that was left, which Practice proposes as well."""
    if left is None:
        return None
    return StudyStep(
        "run",
        f"Practice: {_left(left.left)}",
        f"/quiz/runs/{left.run}",
        f"you stopped after {left.count - left.left} of {left.count}",
        left.left * pace.question_minutes,
        questions=left.left,
    )


def _left(questions: int) -> str:
    """How many questions of a run or a test are left."""
    return f"{questions} {'question' if questions == 1 else 'questions'} left"


def cards_step(left: CardsLeft) -> StudyStep | None:
    """The cards that the desk holds, in its number; none while all wait for a time."""
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


def _some_of(step: StudyStep, minutes: float) -> StudyStep | None:
    """As many new cards of a day as the minutes hold, beside their number."""
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
    """The weakest objective, as practice orders them; none when all is answered.

    If it was tested and rests on something weak, that comes first. Where hardly
    anything was tested or read, it is what the `page` of the day is on.
    """
    order = weakest_first(library, record, domains)
    if not order or order[0].asked_out:
        return None
    first = order[0]
    if first.low and first.ground is not None:
        return first_this(first.ground, first.topic, record)
    if page is not None and not first.tested and not first.standing.pages.read:
        first = _on_page(library, order, page.topic) or first
    return _practice(library, first, pace)


def _on_page(library: Library, order: Iterable[WeakObjective], slug: str) -> WeakObjective | None:
    """What a page is on, as far as that is hardly tested."""
    topic = library.topics[slug]
    found = (w for w in order if topic in w.standing.topics and not w.tested)
    weak = next(found, None) if topic.questions else None
    return dataclasses.replace(weak, topic=topic) if weak else None


def _practice(library: Library, weak: WeakObjective, pace: StudyPace) -> StudyStep:
    """What practice asks: on a weakness all pages of its objective, else the one page.

    The questions that are kept for exams are not among them.
    """
    topic, goal = weak.topic, weak.standing.objective
    questions = of_topic(library, topic.slug)
    title, address = topic.title, f"/quiz/{topic.slug}"
    if weak.low:
        questions = of_objective(library, goal.number)
        title, address = goal.name, f"/quiz/objectives/{goal.number}"
    open_ = sum(not question.reserved for question in questions)
    count = min(open_ or len(questions), _MOST)
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
