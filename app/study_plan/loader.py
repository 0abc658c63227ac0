"""Assemble the inputs of the plan for one learner."""

import dataclasses
import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated

from fastapi import Depends
from markupsafe import Markup
from sqlmodel import Session

from app.accounts.current_learner import CurrentLearner, LearnerProfile, RequestContext
from app.clock import Now, from_milliseconds, study_day_start, to_milliseconds
from app.content.library import Library
from app.database.engine import DbSession
from app.markup.model import ExamBlueprint
from app.mastery.objectives import DomainMastery, LearnerEvidence, build_standings, count_answered
from app.mastery.question_counts import weakest_first
from app.mastery.readiness import (
    MissingEvidence,
    ScoreForecast,
    chance_words,
    forecast_score,
    is_long,
    short_exam,
)
from app.mastery.store import PageProgress, load_mastery_data
from app.spaced_repetition.queue import orphaned_cards
from app.spaced_repetition.review_pace import card_seconds
from app.study_plan import store
from app.study_plan.calendar import (
    USUAL,
    CardsOfDay,
    MockExamOption,
    OpenPlacementTest,
    OpenPracticeRun,
    OpenSitting,
    PageToRead,
    PlannedDay,
    RemainingWork,
    StudyPace,
    StudyPlan,
    TimeBudget,
    TodayInputs,
    TodayPlan,
    add_time_advice,
    cards_by_day,
    choose_mock,
    daily_page_part,
    mock_days,
    page_part,
    plan_days,
    reading_days,
    time_for_pages,
)
from app.study_plan.card_plan import CardPlanInputs, CardsLeft
from app.study_plan.forecast import (
    HORIZON,
    DeckCounts,
    ScenarioComparison,
    compare_scenarios,
    pace_words,
    plan_inputs,
    plan_summary,
)
from app.study_plan.store import StudyHistory
from app.study_plan.today import minutes_left, minutes_read, over_words, plan_today, reading_order
from app.study_plan.todays_cards import TodaysQueue, card_pace_today, todays_plan, todays_queue
from app.web.dependencies import CurrentLibrary
from app.widgets.column_charts import ScoreRange, draw_score


def draw_forecast(ahead: ScoreForecast, target: int | None) -> Markup:
    """Render the forecast as SVG; `target` is in percent."""
    of = ahead.questions
    says = f"Expected {ahead.expected} of {of}, most likely {ahead.low} to {ahead.high}"
    words = f"your target {target}%" if target else ""
    score = ScoreRange(
        score=ahead.expected,
        low=ahead.low,
        high=ahead.high,
        of=of,
        target=of * (target or 0) / 100,
        target_words=words,
    )
    told = f"{says}; {words}" if words else says
    return draw_score(score, told, (0, of // 2, of))


WEEK = dt.timedelta(days=6)


@dataclasses.dataclass(frozen=True, slots=True)
class LearnerSnapshot:
    """Everything the plan needs to know about a learner at one moment.

    `coming` are the cards of the days up to a week from now, by ISO date.
    """

    library: Library
    learner: LearnerProfile
    now: dt.datetime
    pages: Sequence[PageProgress]
    coming: Mapping[str, store.DueCount]
    record: LearnerEvidence
    domains: tuple[DomainMastery, ...]
    readiness: ScoreForecast | MissingEvidence

    @property
    def day(self) -> dt.date:
        return self.learner.study_day(self.now)

    @property
    def is_new(self) -> bool:
        """Whether the learner has done nothing yet."""
        return not (self.record.firsts or self.pages or self.record.cards or self.coming)

    @property
    def until(self) -> dt.datetime:
        """When pages built from it expire: a card becomes due, or the study day ends."""
        ends = [self.learner.next_study_day(self.now)]
        ends += [from_milliseconds(row.next_at) for row in self.coming.values() if row.next_at]
        return min(ends)

    @property
    def ahead(self) -> ScoreForecast | None:
        """The score forecast for today; None while there is too little evidence."""
        return self.readiness if isinstance(self.readiness, ScoreForecast) else None

    @property
    def ahead_drawn(self) -> Markup:
        """The forecast as an SVG chart."""
        target = self.learner.target
        return draw_forecast(self.ahead, target) if self.ahead else Markup()

    @property
    def lacking(self) -> MissingEvidence | None:
        """The evidence missing for a forecast; None if there is enough."""
        return self.readiness if isinstance(self.readiness, MissingEvidence) else None

    @property
    def chance(self) -> str:
        """The chance of reaching the learner's target, in words; empty without a target."""
        ahead, target = self.ahead, self.learner.target
        if ahead is None or target is None:
            return ""
        return chance_words(ahead.chance(target / 100))


def main_exam(library: Library) -> ExamBlueprint | None:
    """Return the mock exam closest to the real exam: the one with the most questions."""
    exams = sorted(library.exams.values(), key=lambda exam: (-exam.questions, exam.slug))
    return exams[0] if exams else None


def load_snapshot(
    library: CurrentLibrary, learner: CurrentLearner, db: DbSession, now: Now
) -> LearnerSnapshot:
    day = learner.study_day(now)
    coming: Mapping[str, store.DueCount] = {}
    known = load_mastery_data(db, learner, now)
    if learner.id:
        span = (day, day + WEEK, to_milliseconds(now))
        gone = orphaned_cards(db, learner.id, library).gone
        coming = store.load_due_counts(db, learner.id, span, gone)
    domains = build_standings(library, known.record, day)
    answers = count_answered(library, known.record.firsts)
    return LearnerSnapshot(
        library=library,
        learner=learner,
        now=now,
        pages=known.pages,
        coming=coming,
        record=known.record,
        domains=domains,
        readiness=forecast_score(domains, main_exam(library), answers),
    )


CurrentSnapshot = Annotated[LearnerSnapshot, Depends(load_snapshot)]


@dataclasses.dataclass(frozen=True, slots=True)
class CardForecast:
    """The cards of today and of the days until the exam.

    `pace` says in words how many new cards a day has, `over` describes the backlog.
    """

    ahead: ScenarioComparison | None = None
    pace: str = ""
    over: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class ExamPlan:
    """The days until the exam: the cards alone, and the full plan.

    `study` is None without an exam day, and if the exam is too far ahead or over.
    """

    cards: CardForecast = dataclasses.field(default_factory=CardForecast)
    study: StudyPlan | None = None


def _cards_ahead(desk: RequestContext, held: DeckCounts, left: CardsLeft) -> CardForecast:
    """Return the card forecast until the exam, with `left` cards today."""
    learner, exam = desk.learner, desk.learner.exam_day
    if exam is None:
        return CardForecast()
    seconds = card_seconds(learner.minutes_a_day)
    times = seconds, desk.day, learner.retention, card_pace_today(desk)
    asked = plan_inputs(held, exam, *times)
    asked = dataclasses.replace(asked, habits=learner.habits)
    today = todays_plan(desk)
    if today is None:
        return CardForecast(compare_scenarios(held, asked, left))
    looks = frozenset(slot.card for slot in today.looks)
    ahead = compare_scenarios(held, dataclasses.replace(asked, looks=looks), left)
    over = over_words(today.over, today.passed)
    return CardForecast(ahead, pace_words(today.outline), over)


@dataclasses.dataclass(frozen=True, slots=True)
class TodaySoFar:
    """What happened today: the minutes spent, and what was started and is unfinished.

    Unfinished are a mock exam in progress, a placement test or a practice run. `answered` are
    minutes of cards and questions, `read` those of pages. `sat` is the day of the last mock exam,
    `pace` the learner's times.
    """

    answered: float = 0.0
    read: float = 0.0
    sat: dt.date | None = None
    pace: StudyPace = USUAL
    running: OpenSitting | None = None
    placing: OpenPlacementTest | None = None
    left_run: OpenPracticeRun | None = None

    @property
    def spent(self) -> float:
        """All minutes spent today."""
        return self.answered + self.read

    @property
    def shown(self) -> int:
        """The same as it is displayed: the sum of the rounded parts."""
        return sum(round(n) for n in (self.answered, self.read) if n >= 1)


def read_today(snapshot: LearnerSnapshot, pace: StudyPace) -> float:
    """Return the minutes of pages read today, at the learner's pace."""
    begun = to_milliseconds(study_day_start(snapshot.day, snapshot.learner.zone))
    return minutes_read(snapshot.pages, snapshot.library, begun) * pace.page


def today_plan(snapshot: LearnerSnapshot, left: CardsLeft, so_far: TodaySoFar) -> TodayPlan:
    """Return what to do today, with `left` cards in the review queue."""
    minutes = snapshot.learner.minutes_on(snapshot.day) - so_far.spent
    return plan_today(
        TodayInputs(
            library=snapshot.library,
            record=snapshot.record,
            domains=snapshot.domains,
            left=left,
            last_topic=snapshot.pages[0].topic if snapshot.pages else "",
            minutes=minutes,
            reading=_reading_minutes_today(snapshot, so_far),
            is_short=is_short(snapshot, so_far),
            running=so_far.running,
            placing=so_far.placing,
            left_run=so_far.left_run,
            mock=_mock_today(snapshot, so_far.sat),
            pace=so_far.pace,
        )
    )


def _reading_minutes_today(snapshot: LearnerSnapshot, so_far: TodaySoFar) -> float:
    """Return the minutes of pages still to read today, at an even pace up to the exam."""
    exam, day = snapshot.learner.exam_day, snapshot.day
    if exam is None or not 0 < (exam - day).days <= HORIZON:
        return 0.0
    mocks, student = _until_exam(snapshot, exam, so_far)
    days = reading_days(day, exam, student, mocks)
    if day not in days:
        return 0.0
    whole = _unread_this_morning(snapshot, so_far)
    read = so_far.read / so_far.pace.page
    return max(0.0, daily_page_part(whole, day, exam, days) - read)


def is_short(snapshot: LearnerSnapshot, so_far: TodaySoFar) -> bool:
    """Return whether the days up to the exam hold fewer minutes than the pages it covers need.

    Computed as of this morning and with all mock exam days, so that reading or taking a mock exam
    does not change the result.
    """
    exam, day = snapshot.learner.exam_day, snapshot.day
    if exam is None or not 0 < (exam - day).days <= HORIZON:
        return False
    mocks, student = _until_exam(snapshot, exam, TodaySoFar(pace=so_far.pace))
    whole = _unread_this_morning(snapshot, so_far) * so_far.pace.page
    return whole > time_for_pages(day, exam, student, mocks)


def _until_exam(
    snapshot: LearnerSnapshot, exam: dt.date, so_far: TodaySoFar
) -> tuple[Collection[dt.date], TimeBudget]:
    """Return the mock exam days and the time budget."""
    learner, day = snapshot.learner, snapshot.day
    mocks = mock_days(day, exam, so_far.sat) if list_mocks(snapshot.library) else ()
    return mocks, TimeBudget(learner.minutes_a_day, pace=so_far.pace, habits=learner.habits)


def _unread_this_morning(snapshot: LearnerSnapshot, so_far: TodaySoFar) -> float:
    return _unread_minutes(snapshot) + so_far.read / so_far.pace.page


def _unread_minutes(snapshot: LearnerSnapshot) -> float:
    """Return the minutes of unread pages that the exam covers."""
    of_exam = (t for t in snapshot.library.topics.values() if not t.level)
    return sum(minutes_left(topic, snapshot.record) for topic in of_exam)


def running_exam(snapshot: LearnerSnapshot, db: Session) -> OpenSitting | None:
    """Return the mock exam in progress with its title, or None."""
    found = store.find_running_exam(db, snapshot.learner.id, to_milliseconds(snapshot.now))
    exam = snapshot.library.exams.get(found.title) if found else None
    if found is None:
        return None
    return dataclasses.replace(found, title=exam.title if exam else "Mock exam")


def unfinished_runs(
    snapshot: LearnerSnapshot, db: Session
) -> tuple[OpenPlacementTest | None, OpenPracticeRun | None]:
    """Return the unfinished placement test and practice run.

    Once a score can be forecast, the placement test is left out.
    """
    if not snapshot.record.firsts and not snapshot.is_new:
        return None, None
    learner, questions = snapshot.learner, snapshot.library.questions
    placing, left_run = store.load_unfinished_runs(db, learner.id, questions)
    return (placing if snapshot.ahead is None else None), left_run


def may_sit_today(snapshot: LearnerSnapshot) -> bool:
    """Return whether today can be a mock exam day, whenever the last one was."""
    return _is_mock_day(snapshot, None)


def _is_mock_day(snapshot: LearnerSnapshot, sat: dt.date | None) -> bool:
    exam, day = snapshot.learner.exam_day, snapshot.day
    if exam is None or exam <= day or snapshot.learner.is_off(day):
        return False
    return (exam - day).days <= HORIZON and day in mock_days(day, exam, sat)


def _mock_today(snapshot: LearnerSnapshot, sat: dt.date | None) -> MockExamOption | None:
    mocks, exam = list_mocks(snapshot.library), snapshot.learner.exam_day
    if exam is None or not mocks or not _is_mock_day(snapshot, sat):
        return None
    part = page_part(_unread_minutes(snapshot), course_minutes(snapshot.library))
    return choose_mock(mocks, snapshot.day, exam, part)


def course_minutes(library: Library) -> float:
    """Return the minutes of all pages that the exam covers."""
    return sum(topic.minutes for topic in library.topics.values() if not topic.level)


def whole_plan(
    desk: RequestContext, snapshot: LearnerSnapshot, held: DeckCounts, days: StudyHistory
) -> ExamPlan:
    """Return the plan until the exam; an empty one without an exam day.

    `days` is the study history, of which today's minutes are subtracted. The first day is what the
    Today page proposes, cards included, unless it is a day off.
    """
    learner, exam, day = desk.learner, desk.learner.exam_day, desk.day
    if exam is None:
        return ExamPlan()
    left = todays_queue(desk).left
    if not 0 <= (exam - day).days <= HORIZON:
        return ExamPlan(_cards_ahead(desk, held, left))
    so_far, today = _load_today_so_far(desk, snapshot, days), None
    if not learner.habits.is_off(day.toordinal()):
        today = today_plan(snapshot, left, so_far)
        left = _count_cards_that_fit(left, today)
    cards = _cards_ahead(desk, held, left)
    work = remaining_work(snapshot, cards.ahead, so_far)
    proposed = _today_as_plan_day(today, day, work, left) if today else None
    usual = learner.minutes_a_day
    student = TimeBudget(usual, so_far.spent, so_far.pace, learner.habits)
    study = plan_days(day, exam, work, student, learner.key, proposed=proposed)
    return ExamPlan(cards, add_time_advice(study, day, work, student, proposed))


def _load_today_so_far(
    desk: RequestContext, snapshot: LearnerSnapshot, days: StudyHistory
) -> TodaySoFar:
    """Return what happened today, for the study plan."""
    learner, db, day = desk.learner, desk.db, desk.day
    done = days.recent.get(day.isoformat())
    pace = store.cached_pace(db, learner, desk.library, day)
    sat = store.last_sat(db, learner.id)
    placing, left_run = unfinished_runs(snapshot, db)
    return TodaySoFar(
        answered=done.milliseconds / 60_000 if done else 0.0,
        read=read_today(snapshot, pace),
        sat=learner.study_day(from_milliseconds(sat)) if sat else None,
        pace=pace,
        running=running_exam(snapshot, db),
        placing=placing,
        left_run=left_run,
    )


def _count_cards_that_fit(left: CardsLeft, today: TodayPlan) -> CardsLeft:
    """Return the part of the queue that Today proposes within its minutes."""
    step = next((s for s in today.steps if s.kind in {"review", "learn"}), None)
    if step is None:
        return dataclasses.replace(left, due=0, learning=0, waiting=0, fresh=0, added=0)
    return dataclasses.replace(left, fresh=step.fresh) if step.fresh else left


def _today_as_plan_day(
    today: TodayPlan, day: dt.date, work: RemainingWork, left: CardsLeft
) -> PlannedDay:
    """Return what Today proposes as the first day of the plan; `left` of the cards fit."""
    cards = work.cards[0] if work.cards else CardsOfDay()
    asked = [step for step in today.steps if step.questions]
    sitting = next((s for s in today.steps if s.kind in {"exam", "mock"}), None)
    return PlannedDay(
        day,
        pages=tuple(
            (step.topic, step.title, step.kind == "continue") for step in today.steps if step.topic
        ),
        questions=sum(step.questions for step in asked),
        about=asked[0].objective if len(asked) == 1 else "",
        cards=dataclasses.replace(cards, learning=left.steps),
        mock=MockExamOption(sitting.title, round(sitting.minutes)) if sitting else None,
        minutes=today.minutes,
    )


def list_mocks(library: Library) -> list[MockExamOption]:
    """Return the mock exams of a course and their short versions, shortest first."""
    exams = library.exams.values()
    papers = (*exams, *(short_exam(exam) for exam in exams if is_long(exam)))
    found = (MockExamOption(e.title, e.minutes, e.slug) for e in papers)
    return sorted(found, key=lambda mock: mock.minutes)


def remaining_work(
    snapshot: LearnerSnapshot, ahead: ScenarioComparison | None, so_far: TodaySoFar
) -> RemainingWork:
    """Return what is left to do until the exam; pages that it does not cover can wait."""
    library, record, domains = snapshot.library, snapshot.record, snapshot.domains
    names = {s.objective.number: s.objective.name for d in domains for s in d.standings}
    last = snapshot.pages[0].topic if snapshot.pages else ""
    short = is_short(snapshot, so_far)
    topics = reading_order(library, record, domains, is_short=short)
    topics.sort(key=lambda topic: topic.slug != last)  # the page left open comes first
    return RemainingWork(
        pages=[
            PageToRead(
                topic.slug,
                topic.title,
                left,
                names.get("".join(topic.objectives[:1]), ""),
            )
            for topic in topics
            if not topic.level and (left := minutes_left(topic, record))
        ],
        whole=course_minutes(library),
        cards=_cards_of_days(snapshot.day, ahead),
        weak=[w.standing.objective.name for w in weakest_first(library, record, domains)],
        mocks=list_mocks(library),
        mock_on=so_far.sat,
        is_short=short,
    )


def _cards_of_days(today: dt.date, ahead: ScenarioComparison | None) -> tuple[CardsOfDay, ...]:
    if ahead is None:
        return ()
    days = ahead.outlook.days
    found = {
        dt.date.fromordinal(d.day): CardsOfDay(d.due, d.fresh, d.final, minutes=d.seconds / 60)
        for d in days
    }
    return cards_by_day(today, found, len(days))


def until_exam(desk: RequestContext, stack: TodaysQueue) -> str:
    """Return a summary of the days until the exam; empty if no exam is ahead."""
    exam, plan = desk.learner.exam_day, todays_plan(desk)
    if exam is None or plan is None or exam <= desk.day:
        return ""
    seconds = card_seconds(desk.learner.minutes_a_day)
    asked = CardPlanInputs(
        desk.day.toordinal(), exam.toordinal(), seconds, habits=desk.learner.habits
    )
    return plan_summary(plan.outline, asked, stack.left)
