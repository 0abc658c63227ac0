"""Study calendar: the pages, questions, cards and mock exam of each day until the exam."""

import bisect
import dataclasses
import datetime as dt
import hashlib
import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from app.accounts.current_learner import DEFAULT_HABITS as NO_HABITS
from app.accounts.current_learner import StudyHabits
from app.clock import round_minutes
from app.content.library import Library
from app.markup.model import Topic
from app.mastery.objectives import DomainMastery, LearnerEvidence
from app.spaced_repetition.review_pace import (
    LOOK_SECONDS,
    NEW_SECONDS,
    CardPace,
    TimeSpent,
    card_seconds,
    shrink_mean,
)
from app.study_plan.card_plan import CardsLeft

QUESTION_MINUTES = 1.2
"""Assumed minutes per question before the learner's own pace is known."""
ROUND = 3
"""The fewest questions in a round."""
_LONGEST = 6.0  # a page left open longer was not read all that time


@dataclasses.dataclass(frozen=True, slots=True)
class StudyPace:
    """Seconds for a new card, a review and a question.

    `page` is the time for a page divided by the minutes that its length suggests.
    """

    first: float = NEW_SECONDS
    look: float = LOOK_SECONDS
    question: float = QUESTION_MINUTES * 60
    page: float = 1.0

    @property
    def question_minutes(self) -> float:
        return self.question / 60


USUAL = StudyPace()


def estimate_pace(cards: CardPace, question: TimeSpent, page: TimeSpent) -> StudyPace:
    """Return the learner's mean times, pulled toward the usual ones while the log is short."""
    return StudyPace(
        first=cards.first,
        look=cards.look,
        question=shrink_mean(question, USUAL.question),
        page=shrink_mean(page, USUAL.page),
    )


def minutes_for_questions(room: float, pace: StudyPace) -> float:
    """Return the minutes of a day to reserve for a round of questions.

    If `room` holds no more than two rounds, pages get all of it and the result is 0.
    """
    few = ROUND * pace.question_minutes
    return few if room >= 2 * few else 0.0


def page_spent(read: Iterable[tuple[str, str, int]], topics: Mapping[str, Topic]) -> TimeSpent:
    """Return how long sections took to read, each divided by its estimated minutes.

    `read` has page, section and the moment in milliseconds at which it was marked as read. The time
    between the marks of two consecutive sections is the reading time of the later one.
    """
    marks: dict[str, dict[str, int]] = {}
    for slug, section, at in read:
        marks.setdefault(slug, {})[section] = at
    parts: list[float] = []
    for slug, at_section in marks.items():
        if slug in topics:
            parts += _page_parts(topics[slug], at_section)
    return TimeSpent(sum(parts), len(parts))


def _page_parts(topic: Topic, at: Mapping[str, int]) -> Collection[float]:
    found = []
    headed = [section for section in topic.sections if section.anchor]
    for before, section in itertools.pairwise(headed):
        if before.anchor not in at or section.anchor not in at or not section.minutes:
            continue
        passed = (at[section.anchor] - at[before.anchor]) / 60_000
        if 0 < passed <= _LONGEST * section.minutes:
            found.append(passed / section.minutes)
    return found


Kind = Literal["exam", "place", "review", "learn", "mock", "read", "continue", "practice", "run"]


@dataclasses.dataclass(frozen=True, slots=True)
class OpenPlacementTest:
    """A started placement test: its run, and how many questions are open."""

    run: int
    left: int


@dataclasses.dataclass(frozen=True, slots=True)
class OpenPracticeRun:
    """An unfinished practice run: how many of its questions are open, and of how many."""

    run: int
    left: int
    count: int


@dataclasses.dataclass(frozen=True, slots=True)
class OpenSitting:
    """A mock exam in progress, and the minutes left on its clock."""

    number: int
    title: str
    minutes: float


@dataclasses.dataclass(frozen=True, slots=True)
class MockExamOption:
    """A mock exam that can be taken; `exam` is its name in URLs."""

    title: str
    minutes: int
    exam: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class TodayInputs:
    """The inputs of today's plan.

    `left` are the cards in the review queue. `minutes` are left of today, of which the study plan
    wants `reading` for pages. `mock` is the mock exam planned for today, `pace` the learner's
    times. `is_short` says that not all pages fit before the exam.
    """

    library: Library
    record: LearnerEvidence
    domains: Sequence[DomainMastery]
    left: CardsLeft
    last_topic: str = ""
    minutes: float = 30.0
    reading: float = 0.0
    running: OpenSitting | None = None
    placing: OpenPlacementTest | None = None
    left_run: OpenPracticeRun | None = None
    mock: MockExamOption | None = None
    pace: StudyPace = USUAL
    is_short: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class StudyStep:
    """One thing to do today, the reason, and its time in minutes.

    `topic` is the page to read. For practice, `questions` is their number and `objective` what they
    are on. `fresh` counts new cards if no card is due.
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
    """The steps that fit into today, the next one first; those in `beyond` do not fit."""

    steps: tuple[StudyStep, ...]
    beyond: tuple[StudyStep, ...]

    @property
    def minutes(self) -> int:
        """Sum of the rounded minutes shown next to the steps."""
        return sum(round_minutes(step.minutes) for step in self.steps)


LAST_MOCK = 2
"""Days between the last mock exam and the exam, to review it and to rest."""
BETWEEN = 4
"""The fewest days between two mock exams, so that there is time to learn from the first."""
_EARLIEST = 3  # days from now until a first mock exam can say something
_MOST_MOCKS = 4
_HALF = 0.5  # share of the pages to read before a full-length mock exam
_PAGES_DONE = 3  # days before the exam by which every page is read
_SATURDAY = 5
_MOST_QUESTIONS = 25
_THEMES = 3
_NEGLIGIBLE_MINUTES = 2.0  # minutes of a page too few for a day of their own
_MISSED = "what you missed in the mock exam"


@dataclasses.dataclass(frozen=True, slots=True)
class PageToRead:
    """A page to read, or the rest of it, in minutes of usual reading."""

    slug: str
    title: str
    minutes: float
    objective: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class CardsOfDay:
    """The cards of a day and their `minutes`, taken from the card plan.

    `learning` of those `due` or `final` are in their learning steps today.
    """

    due: int = 0
    fresh: int = 0
    final: int = 0
    learning: int = 0
    minutes: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class RemainingWork:
    """What is left to do until the exam.

    `pages` are unread, and `whole` is the minutes of all pages that the exam covers. `cards` has
    one entry per day from today on. `weak` names objectives, weakest first. `mocks` are sorted by
    length; `mock_on` is the day of the last one taken. If time `is_short`, the pages go through the
    objectives in turn.
    """

    pages: Sequence[PageToRead] = ()
    whole: float = 0.0
    cards: Sequence[CardsOfDay] = ()
    weak: Sequence[str] = ()
    mocks: Sequence[MockExamOption] = ()
    mock_on: dt.date | None = None
    is_short: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class TimeBudget:
    """A learner's time: minutes a day, those spent today, pace and habits."""

    minutes: float
    spent: float = 0.0
    pace: StudyPace = USUAL
    habits: StudyHabits = NO_HABITS

    def left(self, day: dt.date, exam: dt.date, *, now: bool) -> float:
        """Return the minutes of a day; today without the minutes already spent."""
        share = self.habits.share_on(day.toordinal(), exam.toordinal())
        return self.minutes * share - (self.spent if now else 0.0)

    def is_off(self, day: dt.date) -> bool:
        return self.habits.is_off(day.toordinal())


@dataclasses.dataclass(frozen=True, slots=True)
class PlannedDay:
    """One day of the plan.

    `pages` has slug, title, and whether it continues from the day before. `about` is the objective
    of the questions, `mock` the mock exam, and `minutes` the total.
    """

    day: dt.date
    pages: tuple[tuple[str, str, bool], ...] = ()
    questions: int = 0
    about: str = ""
    cards: CardsOfDay = dataclasses.field(default_factory=CardsOfDay)
    mock: MockExamOption | None = None
    minutes: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class StudyPlan:
    """The days up to the one before the exam; `left` are pages that do not fit.

    `over` is the minutes shown for these pages. With `more` minutes a day they would fit; 0 means
    no advice (see `add_time_advice`). `pace` is what all minutes are computed with.
    """

    exam: dt.date
    days: tuple[PlannedDay, ...]
    left: tuple[str, ...] = ()
    over: int = 0
    more: int = 0
    pace: StudyPace = USUAL
    is_short: bool = False

    @property
    def mocks(self) -> int:
        return sum(day.mock is not None for day in self.days)

    @property
    def questions(self) -> int:
        return sum(day.questions for day in self.days)

    @property
    def has_usual_pace(self) -> bool:
        """Whether nothing is known yet about this learner's own pace."""
        return self.pace == USUAL

    @property
    def pages(self) -> int:
        """How many pages are read to the end. An unfinished page is among those left."""
        planned = {(slug, title) for day in self.days for slug, title, _ in day.pages}
        return sum(title not in self.left for _, title in planned)

    @property
    def unread(self) -> tuple[str, ...]:
        """The titles of pages that do not fit; a started page is listed as its rest."""
        begun = {title for day in self.days for _, title, _ in day.pages}
        return tuple(t + " (the rest of it)" * (t in begun) for t in self.left)

    @property
    def minutes(self) -> int:
        """The total time: the sum of the minutes shown for the days."""
        return _shown_days(self.days)

    @property
    def weeks(self) -> Iterator[tuple[dt.date, tuple[PlannedDay, ...], int]]:
        """Yield the days by week: the Monday, the days, and the minutes shown for them."""
        by_week: dict[dt.date, list[PlannedDay]] = {}
        for day in self.days:
            monday = day.day - dt.timedelta(days=day.day.weekday())
            by_week.setdefault(monday, []).append(day)
        return ((at, tuple(days), _shown_days(days)) for at, days in by_week.items())


def _shown_days(days: Sequence[PlannedDay]) -> int:
    return sum(round_minutes(day.minutes) for day in days)


def plan_days(
    today: dt.date,
    exam: dt.date,
    work: RemainingWork,
    student: TimeBudget,
    seed: str,
    *,
    proposed: PlannedDay | None = None,
) -> StudyPlan:
    """Plan each day from `today` to the one before the `exam`.

    If `proposed` is given, it is today's plan, and its content is not planned again. Each day gets
    cards first, then the mock exam, then pages at an even pace that ends in time, then at least one
    round of questions if there is room. A missed day needs no rule of its own: the remaining work
    is spread from scratch. The same arguments give the same plan.
    """
    count = max(0, (exam - today).days)
    days = [today + dt.timedelta(days=n) for n in range(count)]
    mocks = mock_days(today, exam, work.mock_on) if work.mocks else frozenset()
    mocks = frozenset(day for day in mocks if not student.is_off(day))
    reader = _PageAllocator(work.pages, student.pace.page)
    made = []
    reading = reading_days(today, exam, student, mocks)
    if proposed is not None and days:
        made.append(proposed)
        reader.skip({slug for slug, _, _ in proposed.pages})
    for place, day in list(enumerate(days))[len(made) :]:
        cards = work.cards[place] if place < len(work.cards) else CardsOfDay()
        left = student.left(day, exam, now=not place)
        room = left - cards.minutes
        mock = None
        if day in mocks:
            unread = page_part(reader.left / student.pace.page, work.whole)
            mock = choose_mock(work.mocks, day, exam, unread)
        room -= minutes_for_questions(room, student.pace)
        wanted = daily_page_part(reader.left, day, exam, reading)
        read = PagesOfDay() if mock else reader.take(max(0.0, room), wanted)
        done = PlannedDay(day, read.pages, cards=cards, mock=mock)
        about = _day_objective(work, read, day, seed)
        made.append(_add_questions(done, left, read.minutes, about, student.pace))
    plan = StudyPlan(exam, tuple(made), pace=student.pace, is_short=work.is_short)
    return _add_unread_pages(plan, reader)


def _add_unread_pages(plan: StudyPlan, reader: "_PageAllocator") -> StudyPlan:
    """Return the plan with the pages that do not fit, in the minutes the pages show."""
    return dataclasses.replace(
        plan,
        left=tuple(page.title for page in reader.pages),
        over=sum(round_minutes(p.minutes / plan.pace.page) for p in reader.pages),
    )


def daily_page_part(
    minutes: float, day: dt.date, exam: dt.date, reading: Iterable[dt.date]
) -> float:
    """Return a day's share of the page minutes; `reading` are the days with pages."""
    end = exam - dt.timedelta(days=_PAGES_DONE)
    return minutes / max(1, sum(day <= d < end for d in reading))


def reading_days(
    today: dt.date, exam: dt.date, student: TimeBudget, mocks: Collection[dt.date]
) -> list[dt.date]:
    """Return the days up to the exam with pages: no days off and no mock exam days."""
    days = (today + dt.timedelta(days=n) for n in range((exam - today).days))
    return [day for day in days if day not in mocks and not student.is_off(day)]


def time_for_pages(
    today: dt.date, exam: dt.date, student: TimeBudget, mocks: Collection[dt.date]
) -> float:
    """Return roughly how many minutes of pages fit into the days up to the exam.

    Cards take their share of each day, and questions a round.
    """
    found = 0.0
    for day in reading_days(today, exam, student, mocks):
        minutes = round(student.left(day, exam, now=day == today))
        room = minutes - card_seconds(minutes) / 60
        found += max(0.0, room - minutes_for_questions(room, student.pace))
    return found


def _add_questions(
    day: PlannedDay, left: float, reading: float, about: str, pace: StudyPace
) -> PlannedDay:
    """Return the day with as many questions as fit into its remaining minutes."""
    spent = day.cards.minutes + reading
    spent += day.mock.minutes if day.mock else 0
    asked = _questions_in(max(0.0, left - spent), pace)
    on = _MISSED if day.mock else about
    return dataclasses.replace(
        day,
        questions=asked,
        about=on if asked else "",
        minutes=spent + asked * pace.question / 60,
    )


def mock_days(today: dt.date, exam: dt.date, sat: dt.date | None = None) -> frozenset[dt.date]:
    """Return the days of mock exams: two days before the exam, and Saturdays before that."""
    last = exam - dt.timedelta(days=LAST_MOCK)
    if last < today:
        return frozenset()
    begin = today + dt.timedelta(days=_EARLIEST)
    first = begin if sat is None else max(begin, sat + dt.timedelta(days=BETWEEN))
    until = (last - first).days - BETWEEN
    saturdays = [
        day
        for n in range(until + 1)
        if (day := first + dt.timedelta(days=n)).weekday() == _SATURDAY
    ]
    found = saturdays[-(_MOST_MOCKS - 1) :]
    if sat is None or (last - sat).days >= LAST_MOCK:
        found.append(last)
    return frozenset(found)


@dataclasses.dataclass(frozen=True, slots=True)
class PagesOfDay:
    """The pages, or parts of pages, planned for a day."""

    pages: tuple[tuple[str, str, bool], ...] = ()
    minutes: float = 0.0
    objective: str = ""


class _PageAllocator:
    """Unread pages in order; each day takes some of them."""

    def __init__(self, pages: Sequence[PageToRead], rate: float) -> None:
        self.pages = [dataclasses.replace(p, minutes=p.minutes * rate) for p in pages]
        self._begun = False

    @property
    def left(self) -> float:
        """The minutes of all pages not yet planned."""
        return sum(page.minutes for page in self.pages)

    def skip(self, slugs: Collection[str]) -> None:
        """Leave out pages that another plan of the day already covers."""
        self.pages = [page for page in self.pages if page.slug not in slugs]

    def take(self, room: float, wanted: float) -> PagesOfDay:
        """Take up to `wanted` minutes of pages if there is room; whole pages if they fit."""
        taken: list[tuple[str, str, bool]] = []
        spent, objective = 0.0, ""
        while self.pages and spent < wanted and room - spent >= _NEGLIGIBLE_MINUTES:
            page = self.pages[0]
            part = min(page.minutes, room - spent)
            taken.append((page.slug, page.title, self._begun))
            objective = objective or page.objective
            spent += part
            self._begun = page.minutes - part >= _NEGLIGIBLE_MINUTES
            if self._begun:
                rest = page.minutes - part
                self.pages[0] = dataclasses.replace(page, minutes=rest)
            else:
                self.pages.pop(0)
        return PagesOfDay(tuple(taken), spent, objective)


def choose_mock(
    mocks: Sequence[MockExamOption], day: dt.date, exam: dt.date, unread: float
) -> MockExamOption:
    """Return the mock exam of a day, from options sorted by length.

    While most pages are unread (`unread` is a share of 1), a short one shows where to begin. From
    then on the full-length exam measures more, although that day takes longer than others. Two days
    before the exam it is always the full-length one, to practice sitting through it.
    """
    last = (exam - day).days <= LAST_MOCK
    return mocks[-1] if last or unread <= _HALF else mocks[0]


def page_part(minutes: float, whole: float) -> float:
    """Return `minutes` as a share of all pages; 0 if there are no pages."""
    return minutes / whole if whole else 0.0


def _questions_in(minutes: float, pace: StudyPace) -> int:
    count = math.floor(minutes * 60 / pace.question + 1e-9)
    return min(count, _MOST_QUESTIONS) if count >= ROUND else 0


def _day_objective(work: RemainingWork, read: PagesOfDay, day: dt.date, seed: str) -> str:
    """Return the objective of the day's page, or one of the weakest in turn."""
    if read.objective or not work.weak:
        return read.objective
    weakest = work.weak[:_THEMES]
    mixed = hashlib.sha256(f"{seed}:{day.toordinal() // len(weakest)}".encode())
    turn = int.from_bytes(mixed.digest()[:4], "big") + day.toordinal()
    return weakest[turn % len(weakest)]


def cards_by_day(
    today: dt.date, found: Mapping[dt.date, CardsOfDay], count: int
) -> tuple[CardsOfDay, ...]:
    """Return the cards of `count` days from `today` on, empty for days not in `found`."""
    days = (today + dt.timedelta(days=n) for n in range(count))
    return tuple(found.get(day, CardsOfDay()) for day in days)


_MORE = (1, 2, 3, 4, *range(5, 245, 5))
"""Extra minutes a day that can be advised, in steps that grow, up to a limit."""


def add_time_advice(
    plan: StudyPlan,
    today: dt.date,
    work: RemainingWork,
    student: TimeBudget,
    proposed: PlannedDay | None = None,
) -> StudyPlan:
    """Return the plan with the fewest extra minutes a day with which every page fits.

    Cards take half of the extra minutes, as of all minutes. Each candidate is checked by planning
    with it; today stays as `proposed`. The advice is 0 if even the maximum is not enough.
    """
    if not plan.left:
        return plan

    def fits(more: int) -> bool:
        longer = dataclasses.replace(student, minutes=student.minutes + more)
        given = _add_card_minutes(work, len(plan.days), more / 2), longer, ""
        return not plan_days(today, plan.exam, *given, proposed=proposed).left

    place = bisect.bisect_left(_MORE, True, key=fits)
    return dataclasses.replace(plan, more=_MORE[place] if place < len(_MORE) else 0)


def _add_card_minutes(work: RemainingWork, days: int, minutes: float) -> RemainingWork:
    """Return the work with `minutes` more of cards on each of the days."""
    none = [CardsOfDay()] * (days - len(work.cards))
    longer = [
        dataclasses.replace(cards, minutes=cards.minutes + minutes)
        for cards in (*work.cards, *none)
    ]
    return dataclasses.replace(work, cards=longer)


PLACEMENT_QUESTION_MINUTES = 1.0
