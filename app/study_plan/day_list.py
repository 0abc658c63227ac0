"""Today's list: made once on the morning of a study day, then only ticked off.

At most four tasks: reviews, pages, questions, new cards. On the day of a mock exam only reviews and
the exam. Nothing unfinished is carried over; the next list is made from what is known then.
"""

import collections
import dataclasses
import datetime as dt
import math
import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal, get_args

from app.accounts.learner import CardAmount, PageLength, PlanCalendar
from app.clock import round_minutes
from app.content.course_facts import CourseFacts
from app.content.reading_routes import Route
from app.study_plan import cards
from app.study_plan.facts import LearnerFacts, TaskKind, sum_readings
from app.study_plan.score import ScoreEstimate

MOST_QUESTIONS, _FEWEST_QUESTIONS = 20, 5
_QUESTION_SHARE = 0.25  # of the minutes
_PAGES_SHARE = 0.72  # of the minutes before the exam; full pages that need more are read short
_NOTHING = 1e-5  # minutes of a page that is read
_LEAST_ROOM = 2.0  # minutes for which it is worth to add something
_JUST_READ = 3  # days
_MIX, _MIX_AFTER_MOCK = (0.5, 0.25), (0.4, 0.4)  # pages just read, missed or weak; the rest: rare
_WEAK_OBJECTIVES, _RARE_OBJECTIVES = 6, 8
_READ_BEFORE = 8.0  # minutes of a domain counted as read before the first page
PLACEMENT_QUESTION_MINUTES = 1.0

ReadReason = Literal["begun", "missed in the mock exam", "missed in the placement test", "weak"]
_REASONS: tuple[ReadReason, ...] = get_args(ReadReason)


@dataclasses.dataclass(frozen=True, slots=True)
class PageToRead:
    """A page on the list: the minutes for what is unread of it, and why it was chosen.

    Of a `short` one only the essential sections are to be read. A page may be chosen because
    another one, for which the reason holds, requires it; else `required_by` is empty.
    """

    slug: str
    minutes: float
    reason: ReadReason
    short: bool = False
    required_by: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Task:
    """One task of the list with its minutes.

    A review or new task has `cards`, a read task `pages`, a practice task `questions`, and a mock
    task `exam`, the slug of the mock exam.
    """

    kind: TaskKind
    minutes: float
    cards: tuple[str, ...] = ()
    pages: tuple[PageToRead, ...] = ()
    questions: tuple[str, ...] = ()
    exam: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class DayList:
    """The list of a study day, in the order to do it.

    `undone` counts, by kind, the lists in a row on which a task was left unfinished before today.
    `ready` are the objectives that were ready on this morning or one before, `known_cards` counts
    the cards that were ever recalled on a later day, `started_cards` those that were ever rated.
    `made_for` are the choices of the learner, `placement_minutes` those of a placement test before
    the list was made. `route` is that of the day; None in lists that were stored before it was.
    """

    day: dt.date
    tasks: tuple[Task, ...] = ()
    undone: Mapping[str, int] = dataclasses.field(default_factory=dict)
    ready: tuple[str, ...] = ()
    known_cards: int = 0
    started_cards: int = 0
    made_for: str = ""
    placement_minutes: float = 0.0
    route: Route | None = None

    @property
    def exam(self) -> str:
        """The slug of the mock exam on the list; empty without one."""
        return next((task.exam for task in self.tasks if task.exam), "")


@dataclasses.dataclass(frozen=True, slots=True)
class DayDone:
    """What was done on a study day: cards, questions answered, pages fully read, exams sat.

    A card is done once it does not come back on that day; until then it is among `begun_cards`.
    `essentials` are the pages of which every essential section is read, `on_pages` the questions
    that were answered on pages of the course and nowhere else.
    """

    cards: Collection[str] = frozenset()
    pages: Collection[str] = frozenset()
    essentials: Collection[str] = frozenset()
    questions: Collection[str] = frozenset()
    on_pages: Collection[str] = frozenset()
    sat: bool = False
    begun_cards: Collection[str] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True)
class TaskProgress:
    """A task with how much of it is done: `done` of `total` cards, pages, questions or exams.

    `unread` are its pages that are not read yet, `begun` counts its cards that come back today, and
    `on_pages` its questions that were answered on pages of the course, not from the list.
    """

    task: Task
    done: int
    total: int
    unread: tuple[PageToRead, ...] = ()
    begun: int = 0
    on_pages: int = 0

    @property
    def kind(self) -> TaskKind:
        return self.task.kind

    @property
    def is_done(self) -> bool:
        return self.done >= self.total

    @property
    def minutes_left(self) -> float:
        if self.task.pages:
            return sum(page.minutes for page in self.unread)
        done = self.done + self.begun / 2
        return self.task.minutes * (1 - done / self.total) if self.total else 0.0


def _is_read(page: PageToRead, done: DayDone) -> bool:
    return page.slug in done.pages or (page.short and page.slug in done.essentials)


def measure_task_progress(tasks: Iterable[Task], done: DayDone) -> tuple[TaskProgress, ...]:
    """Return the tasks with what was done of each."""
    ticked = []
    for task in tasks:
        unread = tuple(page for page in task.pages if not _is_read(page, done))
        count = len(task.pages) - len(unread) + bool(task.exam and done.sat)
        count += sum(card in done.cards for card in task.cards)
        count += sum(question in done.questions for question in task.questions)
        total = len(task.cards) + len(task.pages) + len(task.questions) + bool(task.exam)
        begun = sum(card in done.begun_cards for card in task.cards)
        on_pages = sum(question in done.on_pages for question in task.questions)
        ticked.append(TaskProgress(task, count, total, unread, begun, on_pages))
    return tuple(ticked)


def count_unfinished_in_a_row(
    undone: Mapping[str, int], ticked: Iterable[TaskProgress]
) -> dict[str, int]:
    """Return for the next list how often each kind of task was left unfinished in a row."""
    return {**undone, **{t.kind: 0 if t.is_done else undone.get(t.kind, 0) + 1 for t in ticked}}


def make_day_list(
    course: CourseFacts,
    learner: LearnerFacts,
    calendar: PlanCalendar,
    estimate: ScoreEstimate | None,
    *,
    minutes: float,
    amount: CardAmount = "normal",
    length: PageLength = "auto",
    seed: str = "",
) -> DayList:
    """Return the list of the learner's day.

    `minutes` are those of the day, a placement test included; a mock exam or a single long page may
    take longer. `seed` draws the questions; the same arguments give the same list. Empty on a day
    off. On the exam day only reviews.
    """
    day, paces, undone = learner.day, learner.paces, dict(learner.undone)
    route = choose_route(course, learner, calendar, minutes, length)
    if calendar.is_off(day):
        return DayList(day, undone=undone, route=route)
    tested = [a for a in learner.answers if a.context == "placement" and a.day == day]
    placement = len(tested) * PLACEMENT_QUESTION_MINUTES
    minutes = max(0.0, minutes - placement)
    due = tuple(card.card for card in cards.choose_cards_to_review(learner, calendar, minutes))
    review = Task("review", len(due) * paces.review, cards=due)
    if course.main_exam_slug and calendar.due_mock_exam_day(day, learner.last_sat):
        mock = Task("mock", course.main_exam_minutes, exam=course.main_exam_slug)
        return DayList(day, (review, mock) if due else (mock,), undone, route=route)
    if calendar.exam_day == day:
        return DayList(day, (review,) if due else (), undone, route=route)
    new = cards.count_new_cards(learner, calendar, minutes, amount)
    share = _QUESTION_SHARE * minutes / paces.question
    questions = int(min(MOST_QUESTIONS, max(min(_FEWEST_QUESTIONS, minutes / 2.4), share)))
    if placement:  # questions were answered today, but nothing was read
        questions = int(min(_FEWEST_QUESTIONS, share))
    most: float = minutes - round_minutes(review.minutes)
    room = most - new * paces.new_card - questions * paces.question
    unread = _pages_left_to_read(course, learner, calendar, route)
    if not placement and all(page.minutes > minutes for page in unread):
        most = math.inf
    pages = _choose_pages(course, learner, estimate, unread, room, most)
    reading = sum(page.minutes for page in pages)
    room -= reading
    if room > _LEAST_ROOM and len(pages) == len(unread) and new:
        spare = cards.new_cards_fitting_before_exam(learner, calendar, minutes)
        more = int(max(0.0, min(room / 2 / paces.new_card, spare - new)))
        new, room = new + more, room - more * paces.new_card
    if room > _LEAST_ROOM:
        questions += max(0, min(MOST_QUESTIONS - questions, int(room / paces.question)))
    fixed = round_minutes(review.minutes) + round_minutes(reading)
    while new + questions:  # a long page takes the time of these two
        asked, learned = questions * paces.question, new * paces.new_card
        if fixed + round_minutes(asked) + round_minutes(learned) <= minutes:
            break
        new, questions = (new - 1, questions) if learned >= asked else (new, questions - 1)
    new_cards = cards.choose_new_cards(course, learner, estimate.pages if estimate else {}, new)
    reads_first = undone.get("read", 0) >= undone.get("practice", 0)
    to_read = [page.slug for page in pages if reads_first]
    drawn = draw_practice_questions(course, learner, estimate, questions, seed, to_read)
    rest = [
        Task("read", reading, pages=tuple(pages)),
        Task("practice", len(drawn) * paces.question, questions=tuple(drawn)),
        Task("new", len(new_cards) * paces.new_card, cards=tuple(new_cards)),
    ]
    rest.sort(key=lambda task: -undone.get(task.kind, 0))
    tasks = tuple(t for t in (review, *rest) if t.cards or t.pages or t.questions)
    return DayList(day, tasks, undone, placement_minutes=placement, route=route)


def reading_minutes_before_exam(
    calendar: PlanCalendar, day: dt.date, minutes_of_day: float
) -> float | None:
    """Return the minutes for pages from tomorrow on: 0 on the last day, None without an exam day."""
    if calendar.exam_day is None:
        return None
    if calendar.days_left(day) <= 1:
        return 0.0
    return _PAGES_SHARE * minutes_of_day * max(1, calendar.study_days_after(day) - 2)


def choose_route(
    course: CourseFacts,
    learner: LearnerFacts,
    calendar: PlanCalendar,
    minutes_of_day: float,
    length: PageLength,
) -> Route:
    """Return the route of the day: as the learner chose, or the essentials if full pages don't fit.

    What is read on the day itself doesn't change it. Once all essentials are read, the rest follows.
    """
    read, pages = sum_readings(learner.readings), course.pages.values()
    if all(read[p.slug].covers_essential_sections for p in pages if p.essential_reading_minutes):
        return "full"
    if length != "auto":
        return length
    time = reading_minutes_before_exam(calendar, learner.day, minutes_of_day)
    begun = {reading.page for reading in learner.readings if reading.day < learner.day}
    full = sum(page.reading_minutes for page in pages if page.slug not in begun)
    return "short" if time is not None and full > time else "full"


def _pages_left_to_read(
    course: CourseFacts, learner: LearnerFacts, calendar: PlanCalendar, route: Route
) -> list[PageToRead]:
    """Return what is left to read, in course order and without a reason; nothing on the last day."""
    if calendar.exam_day and calendar.days_left(learner.day) == 1:
        return []
    read, left, is_short = sum_readings(learner.readings), [], route == "short"
    for page in course.pages.values():
        part = read[page.slug]
        minutes = page.reading_minutes - page.compute_reading_minutes_of_fraction(part)
        if is_short:
            minutes = page.essential_reading_minutes * (1 - part.essential_share)
        if minutes > _NOTHING:
            left.append(PageToRead(page.slug, round_minutes(minutes), "weak", is_short))
    return left


def _choose_pages(
    course: CourseFacts,
    learner: LearnerFacts,
    estimate: ScoreEstimate | None,
    unread: list[PageToRead],
    minutes_left: float,
    longest_page_minutes: float,
) -> list[PageToRead]:
    """Return the pages to read in `minutes_left` minutes; if none fits, the shortest may be longer.

    Pages begun or missed come first, before each page the unread ones that it requires. The domain
    that has most to gain for what was read of it gives the next one.
    """
    read = sum_readings(learner.readings)

    def unknown(objective: str) -> float:
        return 1 - estimate.objectives[objective].known if estimate else 0.5

    weakness = {
        domain.number: sum(
            course.objectives[o].exam_share * unknown(o) for o in domain.objective_numbers
        )
        for domain in course.domains
    }
    reading: dict[str, float] = collections.defaultdict(float)
    objectives = collections.Counter[str]()
    for slug, done in read.items():
        if (facts := course.pages.get(slug)) is not None:
            reading[facts.domain] += facts.compute_reading_minutes_of_fraction(done)
            objectives.update(facts.objectives)
    mock, placement = (_pages_missed(course, learner, kind) for kind in ("exam", "placement"))
    unread, chosen = list(unread), list[PageToRead]()

    def gain(slug: str) -> tuple[bool, bool, bool, float]:
        own = course.pages[slug].objectives[0]
        return slug in read, slug in mock, slug in placement, unknown(own) / (1 + objectives[own])

    while unread and minutes_left > 0:
        first = {page.slug: _first_unread_requirement(course, page, unread) for page in unread}
        fitting = [slug for slug, page in first.items() if page.minutes <= minutes_left]
        if not fitting and not chosen:
            shortest = min(first, key=lambda slug: first[slug].minutes)
            fitting = [shortest] if first[shortest].minutes <= longest_page_minutes else []
        if not fitting:
            break
        fitting = [slug for slug in fitting if any(gain(slug)[:3])] or fitting
        domains = sorted({course.pages[slug].domain for slug in fitting})
        domain = max(domains, key=lambda d: weakness[d] / (_READ_BEFORE + reading[d]))
        goal = max((s for s in fitting if course.pages[s].domain == domain), key=gain)
        page = first[goal]
        chosen_for = page.slug if any(gain(page.slug)[:3]) else goal
        reason = next(r for r, holds in zip(_REASONS, gain(chosen_for), strict=True) if holds)
        required_by = "" if chosen_for == page.slug else chosen_for
        chosen.append(dataclasses.replace(page, reason=reason, required_by=required_by))
        unread.remove(page)
        minutes_left -= page.minutes
        reading[course.pages[page.slug].domain] += page.minutes
        objectives.update(course.pages[page.slug].objectives)
    return chosen


def _first_unread_requirement(
    course: CourseFacts, page: PageToRead, unread: list[PageToRead]
) -> PageToRead:
    """Return the first unread page that a page requires, directly or not; itself without any."""
    others = [other for other in unread if other is not page]
    requires = course.pages[page.slug].required_pages
    before = next((other for other in others if other.slug in requires), None)
    return _first_unread_requirement(course, before, others) if before else page


def _pages_missed(course: CourseFacts, learner: LearnerFacts, context: str) -> set[str]:
    """Return the pages with a question missed in the placement test, or in the last mock exam."""
    last_exam = max((a.day for a in learner.answers if a.context == "exam"), default=None)
    return {
        course.questions[answer.question].page
        for answer in learner.answers
        if answer.context == context and answer.score < 1 and answer.question in course.questions
        if context != "exam" or answer.day == last_exam
    }


def draw_practice_questions(
    course: CourseFacts,
    learner: LearnerFacts,
    estimate: ScoreEstimate | None,
    count: int,
    seed: str,
    to_read: Collection[str] = (),
) -> list[str]:
    """Return `count` questions: about pages just read, then missed or weak, then rare.

    Half are about the pages `to_read`, else those of the last three days. A quarter are missed ones
    or on the objectives with most to gain, a quarter on those with fewest answers. Only missed ones
    were seen before. What was read or missed leads; the rest is in random order.
    """
    rng = random.Random(f"{seed} {learner.day}")  # noqa: S311  # it draws questions, no secrets
    questions = {answer.question for answer in learner.answers}
    free = {
        q.id: q for q in course.questions.values() if q.id not in questions and not q.is_exam_only
    }
    sat = any(answer.context == "exam" for answer in learner.answers)
    read_share, weak_share = _MIX_AFTER_MOCK if sat else _MIX
    since = learner.day - dt.timedelta(days=_JUST_READ)
    recent = {reading.page for reading in learner.readings if reading.day >= since}
    about_read = sorted(q.id for q in free.values() if q.page in recent or q.page in to_read)
    rng.shuffle(about_read)
    about_read.sort(key=lambda item: free[item].page not in to_read)
    picked = dict.fromkeys(about_read[: round(count * read_share)])
    weak = round(count * weak_share)
    missed = sorted(
        (day, item)
        for item, day in learner.missed.items()
        if day < learner.day and item in course.questions
    )[: (weak + 1) // 2]
    picked |= dict.fromkeys(item for _, item in missed)
    leading = list(picked)

    def unknown(number: str) -> float:
        known = estimate.objectives[number].known if estimate else 0.5
        return course.objectives[number].exam_share * (1 - known)

    gainful = sorted(course.objectives, key=lambda o: -unknown(o))[:_WEAK_OBJECTIVES]
    rng.shuffle(gainful)
    picked |= _draw_in_turn(course, gainful, weak - len(missed), free.keys() - picked.keys(), rng)
    counts = collections.Counter(
        o for q in questions if q in course.questions for o in course.questions[q].objectives
    )
    rare = sorted(
        course.objectives,
        key=lambda o: (counts[o] / (course.objectives[o].exam_share or 1), rng.random()),
    )
    for some in (rare[:_RARE_OBJECTIVES], rare):
        left = free.keys() - picked.keys()
        picked |= _draw_in_turn(course, some, count - len(picked), left, rng)
    rest = [item for item in picked if item not in leading]
    rng.shuffle(rest)
    return leading + rest


def _draw_in_turn(
    course: CourseFacts,
    objectives: Sequence[str],
    count: int,
    available: Collection[str],
    rng: random.Random,
) -> dict[str, None]:
    """Return `count` of the free questions, one of each objective in turn."""
    piles = [
        sorted(q for q in course.objectives[number].question_ids if q in available)
        for number in objectives
    ]
    picked: dict[str, None] = {}
    while len(picked) < count and any(piles):
        for pile in piles:
            pile[:] = [q for q in pile if q not in picked]
            if pile and len(picked) < count:
                picked[pile.pop(rng.randrange(len(pile)))] = None
    return picked
