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
from app.content.reading_routes import ReadingRoute
from app.study_plan import cards
from app.study_plan.facts import LearnerFacts, Paces, TaskKind, sum_readings_by_page
from app.study_plan.score import ScoreEstimate

MOST_QUESTIONS, _FEWEST_QUESTIONS = 20, 5
_QUESTION_SHARE = 0.25  # of the minutes
_LEFT_BY_REVIEWS = 0.85  # of the minutes, with new cards, as simulated learners spend them
_NOTHING = 1e-5  # minutes of a page that is read
_LEAST_ROOM = 2.0  # minutes for which it is worth to add something
_JUST_READ = 3  # days
_MIX, _MIX_AFTER_MOCK = (0.5, 0.25), (0.4, 0.4)  # pages just read, missed or weak; the rest: rare
_WEAK_OBJECTIVES, _RARE_OBJECTIVES = 6, 8
_READ_BEFORE = 8.0  # minutes of a domain counted as read before the first page
PLACEMENT_QUESTION_MINUTES = 1.0
# Times the minutes for reading, which are too few: of simulated learners with 7 to 24 days who finish
# each list, those who need 1.2 times as much read every page, those who need 1.4 times don't.
MOST_NEEDED_IF_FINISHED = 1.25

ReadReason = Literal["begun", "missed in the mock exam", "missed in the placement test", "weak"]
_REASONS: tuple[ReadReason, ...] = get_args(ReadReason)


@dataclasses.dataclass(frozen=True, slots=True)
class PageToRead:
    """A page on the list: the minutes for what is unread of it, and why it was chosen.

    Of a `short` one only the essential sections are to be read; with `is_rest` they are read. A page
    may be chosen because `required_by` requires it, for which the reason holds; else it is empty.
    """

    slug: str
    minutes: float
    reason: ReadReason
    short: bool = False
    required_by: str = ""
    is_rest: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Task:
    """A task with its minutes: cards to review or begin, pages, questions, or the slug of an exam."""

    kind: TaskKind
    minutes: float
    cards: tuple[str, ...] = ()
    pages: tuple[PageToRead, ...] = ()
    questions: tuple[str, ...] = ()
    exam: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class DayList:
    """The list of a study day, in the order to do it.

    `undone` counts by kind the lists in a row, before today's, on which a task was left unfinished.
    `ready` are objectives that were ever ready. `known_cards` were ever recalled on a later day,
    `started_cards` ever rated. `made_for` are the choices of the learner, `placement_minutes` those of
    a placement test before the list was made. `route` is None in lists that were stored before it was.
    """

    day: dt.date
    tasks: tuple[Task, ...] = ()
    undone: Mapping[str, int] = dataclasses.field(default_factory=dict)
    ready: tuple[str, ...] = ()
    known_cards: int = 0
    started_cards: int = 0
    made_for: str = ""
    placement_minutes: float = 0.0
    route: ReadingRoute | None = None

    @property
    def exam(self) -> str:
        """The slug of the mock exam on the list; empty without one."""
        return next((task.exam for task in self.tasks if task.exam), "")


@dataclasses.dataclass(frozen=True, slots=True)
class DayActivity:
    """What was done on a study day until now. A finished card doesn't come back on that day."""

    finished_cards: Collection[str] = frozenset()
    pages_read: Collection[str] = frozenset()
    essentials_read: Collection[str] = frozenset()
    answered_questions: Collection[str] = frozenset()
    has_sat_exam: bool = False
    begun_cards: Collection[str] = frozenset()
    left_out_cards: Collection[str] = frozenset()
    answered_only_on_pages: Collection[str] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True)
class TaskProgress:
    """A task with how many of its cards, pages, questions or exams are done.

    `begun_count` counts its cards that come back today, `on_page_count` the questions of it that were
    answered only on their page, `left_out_count` its cards that are done without a rating.
    """

    task: Task
    done_count: int
    total_count: int
    unread_pages: tuple[PageToRead, ...] = ()
    begun_count: int = 0
    on_page_count: int = 0
    left_out_count: int = 0

    @property
    def kind(self) -> TaskKind:
        return self.task.kind

    @property
    def is_done(self) -> bool:
        return self.done_count >= self.total_count

    @property
    def minutes_left(self) -> float:
        if self.task.pages:
            return sum(page.minutes for page in self.unread_pages)
        done = self.done_count + self.begun_count / 2
        return self.task.minutes * (1 - done / self.total_count) if self.total_count else 0.0


def measure_task_progress(tasks: Iterable[Task], activity: DayActivity) -> tuple[TaskProgress, ...]:
    """Return the tasks with what was done of each."""
    ticked, enough = [], {*activity.pages_read, *activity.essentials_read}
    for task in tasks:
        unread = tuple(
            p for p in task.pages if p.slug not in (enough if p.short else activity.pages_read)
        )
        count = len(task.pages) - len(unread) + bool(task.exam and activity.has_sat_exam)
        count += sum(card in activity.finished_cards for card in task.cards)
        count += sum(question in activity.answered_questions for question in task.questions)
        total = len(task.cards) + len(task.pages) + len(task.questions) + bool(task.exam)
        begun = sum(card in activity.begun_cards for card in task.cards)
        on_page = sum(question in activity.answered_only_on_pages for question in task.questions)
        left_out = sum(card in activity.left_out_cards for card in task.cards)
        ticked.append(TaskProgress(task, count, total, unread, begun, on_page, left_out))
    return tuple(ticked)


def count_unfinished_in_a_row(
    earlier: Mapping[str, int], tasks: Iterable[TaskProgress]
) -> dict[str, int]:
    """Return for the next list how often each kind of task was left unfinished in a row."""
    now: dict[str, int] = {t.kind: 0 if t.is_done else earlier.get(t.kind, 0) + 1 for t in tasks}
    return {**earlier, **now}


def make_day_list(
    course: CourseFacts,
    learner: LearnerFacts,
    calendar: PlanCalendar,
    estimate: ScoreEstimate | None,
    *,
    day_minutes: float,
    amount: CardAmount = "normal",
    length: PageLength = "auto",
    seed: str = "",
) -> DayList:
    """Return the list of the learner's day; the same arguments give the same list.

    `day_minutes` include a placement test; a mock exam or a single long page may take longer.
    Empty on a day off. On the exam day only reviews.
    """
    day, paces, undone = learner.day, learner.paces, dict(learner.unfinished_by_kind)
    route = choose_route(course, learner, calendar, day_minutes, length)
    if calendar.is_day_off(day):
        return DayList(day, undone=undone, route=route)
    tested = [a for a in learner.first_answers if a.context == "placement" and a.day == day]
    placement = len(tested) * PLACEMENT_QUESTION_MINUTES
    day_minutes = max(0.0, day_minutes - placement)
    due = tuple(card.card for card in cards.choose_cards_to_review(learner, calendar, day_minutes))
    review = Task("review", len(due) * paces.review_minutes, cards=due)
    if course.main_exam_slug and calendar.find_due_mock_exam_day(day, learner.last_exam_day):
        mock = Task("mock", course.main_exam_minutes, exam=course.main_exam_slug)
        return DayList(day, (review, mock) if due else (mock,), undone, route=route)
    if calendar.exam_day == day:
        return DayList(day, (review,) if due else (), undone, route=route)
    new = cards.count_new_cards_to_begin(learner, calendar, day_minutes, amount)
    questions = int(_compute_questions_of_day(day_minutes, paces))
    if placement:  # questions were answered today, but nothing was read
        share = _QUESTION_SHARE * day_minutes / paces.question_minutes
        questions = min(_FEWEST_QUESTIONS, int(share))
    most: float = day_minutes - round_minutes(review.minutes)
    room = most - new * paces.new_card_minutes - questions * paces.question_minutes
    unread = list_unread_pages(course, learner, route) if calendar.days_until_exam(day) > 1 else []
    unread = [page for page in unread if not page.is_rest] or unread
    if not placement and all(page.minutes > day_minutes for page in unread):
        most = math.inf
    pages = _choose_pages(course, learner, estimate, unread, room, most)
    reading = sum(page.minutes for page in pages)
    room -= reading
    if room > _LEAST_ROOM and len(pages) == len(unread) and new:
        spare = cards.count_cards_fitting_before_exam(learner, calendar, day_minutes)
        more = int(max(0.0, min(room / 2 / paces.new_card_minutes, spare - new)))
        new, room = new + more, room - more * paces.new_card_minutes
    if room > _LEAST_ROOM:
        questions += max(0, min(MOST_QUESTIONS - questions, int(room / paces.question_minutes)))
    fixed = round_minutes(review.minutes) + round_minutes(reading)
    while new + questions:  # a long page takes the time of these two
        asked, learned = questions * paces.question_minutes, new * paces.new_card_minutes
        if fixed + round_minutes(asked) + round_minutes(learned) <= day_minutes:
            break
        new, questions = (new - 1, questions) if learned >= asked else (new, questions - 1)
    known = estimate.pages if estimate else {}
    new_cards = cards.choose_new_cards(course, learner, known, new, due)
    reads_first = undone.get("read", 0) >= undone.get("practice", 0)
    to_read = [page.slug for page in pages if reads_first]
    drawn = draw_practice_questions(course, learner, estimate, questions, seed, to_read)
    rest = [
        Task("read", reading, pages=tuple(pages)),
        Task("practice", len(drawn) * paces.question_minutes, questions=tuple(drawn)),
        Task("new", len(new_cards) * paces.new_card_minutes, cards=tuple(new_cards)),
    ]
    rest.sort(key=lambda task: -undone.get(task.kind, 0))
    tasks = tuple(t for t in (review, *rest) if t.cards or t.pages or t.questions)
    return DayList(day, tasks, undone, placement_minutes=placement, route=route)


def _compute_questions_of_day(day_minutes: float, paces: Paces) -> float:
    share = _QUESTION_SHARE * day_minutes / paces.question_minutes
    return min(MOST_QUESTIONS, max(min(_FEWEST_QUESTIONS, day_minutes / 2.4), share))


def compute_reading_minutes_after_today(
    learner: LearnerFacts, calendar: PlanCalendar, day_minutes: float, amount: CardAmount
) -> float:
    """Return how many minutes the lists of later days will have for pages, rather too few."""
    days = len(calendar.list_reading_days_after(learner.day))
    return days * _compute_reading_minutes_of_day(learner.paces, day_minutes, amount)


def _compute_reading_minutes_of_day(paces: Paces, day_minutes: float, amount: CardAmount) -> float:
    asked = _compute_questions_of_day(day_minutes, paces) * paces.question_minutes
    return max(0.0, (_LEFT_BY_REVIEWS - cards.NEW_SHARE[amount]) * day_minutes - asked)


def choose_route(
    course: CourseFacts,
    learner: LearnerFacts,
    calendar: PlanCalendar,
    day_minutes: float,
    length: PageLength,
) -> ReadingRoute:
    """Return the chosen route of the day, or the essentials if full pages don't fit.

    What is read on the day itself doesn't change it. Once all essentials are read, the rest follows.
    """
    read, pages = sum_readings_by_page(learner.readings), course.pages.values()
    if all(read[p.slug].covers_essential_sections for p in pages if p.essential_reading_minutes):
        return "full"
    if length != "auto" or calendar.exam_day is None:
        return "short" if length == "short" else "full"
    begun = {reading.page for reading in learner.readings if reading.day < learner.day}
    full = sum(page.reading_minutes for page in pages if page.slug not in begun)
    days = 1 + len(calendar.list_reading_days_after(learner.day))
    minutes = _compute_reading_minutes_of_day(learner.paces, day_minutes, "normal")
    return "short" if full > MOST_NEEDED_IF_FINISHED * minutes * days else "full"


def list_unread_pages(
    course: CourseFacts, learner: LearnerFacts, reading_route: ReadingRoute
) -> list[PageToRead]:
    """Return what is left to read on a route, in course order and without a reason."""
    read, left, is_short = sum_readings_by_page(learner.readings), [], reading_route == "short"
    for slug, page in course.pages.items():
        part = read[slug]
        minutes = page.reading_minutes - page.compute_reading_minutes_of_fraction(part)
        if is_short:
            minutes = page.essential_reading_minutes * (1 - part.essential_share)
        if minutes > _NOTHING:
            is_rest = part.covers_essential_sections
            left.append(PageToRead(slug, round_minutes(minutes), "weak", is_short, "", is_rest))
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

    Pages begun come first, then the objective that lost most in the last mock exam, pages missed in a
    placement test (at first those that need no other), and the domain with most to gain.
    """
    read = sum_readings_by_page(learner.readings)
    unknown = _compute_unknown_share_by_objective(course, estimate)
    weakness = {d.number: sum(unknown[o] for o in d.objective_numbers) for d in course.domains}
    reading: dict[str, float] = collections.defaultdict(float)
    objectives = collections.Counter[str]()
    for slug, done in read.items():
        if (facts := course.pages.get(slug)) is not None:
            reading[facts.domain] += facts.compute_reading_minutes_of_fraction(done)
            objectives.update(facts.objectives)
    missed = {
        (answer.context, course.questions[answer.question].page)
        for answer in learner.first_answers
        if answer.score < 1 and answer.question in course.questions
    }
    lost = sum_points_lost_in_last_mock_exam(course, learner)
    unread, chosen = list(unread), list[PageToRead]()

    def gain(slug: str) -> tuple[float, ...]:
        own, domain = course.pages[slug].objectives[0], course.pages[slug].domain
        of_domain = weakness[domain] / (_READ_BEFORE + reading[domain])
        tests = (("placement", slug) in missed, ("exam", slug) in missed)
        direct = tests[0] and first[slug].slug == slug
        of_objective = unknown[own] / (1 + objectives[own])
        return slug in read, lost[own], *tests, direct, of_domain, of_objective

    while unread and minutes_left > 0:
        first = {page.slug: _find_unread_requirement(course, page, unread) for page in unread}
        fitting = [slug for slug, page in first.items() if page.minutes <= minutes_left]
        if not fitting and not chosen:
            shortest = min(first, key=lambda slug: first[slug].minutes)
            fitting = [shortest] if first[shortest].minutes <= longest_page_minutes else []
        if not fitting:
            break
        goal = max(fitting, key=gain)
        page = first[goal]
        begun, _, *tests, _, _ = gain(page.slug)
        chosen_for = page.slug if begun or any(tests) else goal
        holding = (*gain(chosen_for)[:3], True)
        reason = next(r for r, holds in zip(_REASONS, holding, strict=True) if holds)
        required_by = "" if chosen_for == page.slug else chosen_for
        chosen.append(dataclasses.replace(page, reason=reason, required_by=required_by))
        unread.remove(page)
        minutes_left -= page.minutes
        reading[course.pages[page.slug].domain] += page.minutes
        objectives.update(course.pages[page.slug].objectives)
        lost[course.pages[page.slug].objectives[0]] /= 2
    return chosen


def _find_unread_requirement(
    course: CourseFacts, page: PageToRead, unread: list[PageToRead]
) -> PageToRead:
    """Return the first unread page that a page requires, directly or not; itself without any."""
    others = [other for other in unread if other is not page]
    before = next((o for o in others if o.slug in course.pages[page.slug].required_pages), None)
    return _find_unread_requirement(course, before, others) if before else page


def _compute_unknown_share_by_objective(
    course: CourseFacts, estimate: ScoreEstimate | None
) -> dict[str, float]:
    """Return the part of the exam (0 to 1) of each objective that is not known yet."""
    known = {o.number: o.known for o in estimate.objectives.values()} if estimate else {}
    return {n: o.exam_share * (1 - known.get(n, 0.5)) for n, o in course.objectives.items()}


def sum_points_lost_in_last_mock_exam(
    course: CourseFacts, learner: LearnerFacts
) -> dict[str, float]:
    """Return points lost by objective and not regained, halved by each page and new answer since."""
    lost, answers = collections.defaultdict[str, float](float), learner.first_answers
    last_day = max((a.day for a in answers if a.context == "exam"), default=dt.date.max)
    for answer in answers:
        if answer.day >= last_day and (question := course.questions.get(answer.question)):
            own, is_exam = question.objectives[0], answer.context == "exam"
            points = (1 - answer.score) * (answer.question in learner.miss_day_by_question)
            lost[own] = lost[own] + points if is_exam else lost[own] / 2
    read_since = {reading.page for reading in learner.readings if reading.day >= last_day}
    for slug in read_since & course.pages.keys():
        lost[course.pages[slug].objectives[0]] /= 2
    return lost


def draw_practice_questions(
    course: CourseFacts,
    learner: LearnerFacts,
    estimate: ScoreEstimate | None,
    count: int,
    seed: str,
    pages_first: Collection[str] = (),
) -> list[str]:
    """Return `count` questions: about pages just read, then missed or weak, then rare.

    Half are about `pages_first`, else the pages of the last three days. A quarter are missed ones or
    on the objectives with most to gain, a quarter on those with fewest answers. Only missed ones were
    seen before. What was read or missed leads; the rest is in random order.
    """
    rng = random.Random(f"{seed} {learner.day}")  # noqa: S311  # it draws questions, no secrets
    questions = {answer.question for answer in learner.first_answers}
    free = {
        q.id: q for q in course.questions.values() if q.id not in questions and not q.is_exam_only
    }
    sat = any(answer.context == "exam" for answer in learner.first_answers)
    read_share, weak_share = _MIX_AFTER_MOCK if sat else _MIX
    recent = {r.page for r in learner.readings if (learner.day - r.day).days <= _JUST_READ}
    about_read = sorted(q.id for q in free.values() if q.page in recent or q.page in pages_first)
    rng.shuffle(about_read)
    about_read.sort(key=lambda item: free[item].page not in pages_first)
    picked = dict.fromkeys(about_read[: round(count * read_share)])
    weak = round(count * weak_share)
    missed = sorted(
        (day, item)
        for item, day in learner.miss_day_by_question.items()
        if day < learner.day and item in course.questions
    )[: (weak + 1) // 2]
    picked |= dict.fromkeys(item for _, item in missed)
    leading = list(picked)
    unknown = _compute_unknown_share_by_objective(course, estimate)
    gainful = sorted(unknown, key=lambda o: -unknown[o])[:_WEAK_OBJECTIVES]
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
