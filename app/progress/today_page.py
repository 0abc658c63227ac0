"""The Today page: next step, cards due this week, blueprint map, first visit."""

import dataclasses
import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse
from markupsafe import Markup
from sqlmodel import Session

from app.accounts.current_learner import RequestContext
from app.clock import from_milliseconds
from app.content.library import Library
from app.database.engine import DbSession
from app.markup.model import Domain, ExamBlueprint, Topic
from app.mastery.objectives import DomainMastery, ObjectiveMastery, readable_anchors
from app.mastery.question_counts import count_missed
from app.mastery.readiness import DomainForecast, ScoreForecast
from app.progress.store import log_prediction
from app.progress.study_log import first_log_day, study_log
from app.questions.question_form import new_token
from app.quiz.selection import draw_placement
from app.spaced_repetition.review_pace import card_seconds
from app.study_plan import store
from app.study_plan.calendar import PLACEMENT_QUESTION_MINUTES
from app.study_plan.card_plan import CardsLeft
from app.study_plan.loader import (
    CurrentSnapshot,
    LearnerSnapshot,
    TodaySoFar,
    main_exam,
    may_sit_today,
    read_today,
    running_exam,
    today_plan,
    unfinished_runs,
    until_exam,
)
from app.study_plan.store import DueCount
from app.study_plan.today import over_words
from app.study_plan.todays_cards import todays_queue
from app.web.formatting import format_duration, format_percent
from app.web.render import render_page
from app.widgets.svg import draw_line, draw_rect, draw_text, svg_root


@dataclasses.dataclass(frozen=True, slots=True)
class FirstVisitInfo:
    """The first-visit summary: the exam, the placement test and the first page.

    `exam` is the mock with the format of the exam, None if the course has none. `placement` is the
    number of questions in the test, `minutes` how long it takes. Of a study session `cards` minutes
    are for cards, and the `rest` for a page and questions.
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
        """The number of objectives in all domains."""
        return sum(len(domain.objectives) for domain in self.domains)

    @property
    def seconds(self) -> int:
        """The seconds per question of the exam."""
        return round(60 * self.exam.minutes / self.exam.questions) if self.exam else 0


def first_visit_info(
    library: Library, exam: ExamBlueprint | None, minutes: int, seed: str
) -> FirstVisitInfo:
    """Return the first-visit summary for a learner with `minutes` a day."""
    domains = library.syllabus.domains
    drawn = draw_placement(list(library.questions.values()), domains, {}, seed)
    order = [library.topics[s] for s in library.syllabus.topics if s in library.topics]
    cards = card_seconds(minutes) / 60
    return FirstVisitInfo(
        exam=exam,
        domains=domains,
        placement=len(drawn),
        minutes=len(drawn) * PLACEMENT_QUESTION_MINUTES,
        first=order[0] if order else None,
        cards=cards,
        rest=minutes - cards,
    )


@dataclasses.dataclass(frozen=True, slots=True)
class UpcomingDay:
    day: dt.date
    cards: int
    today: bool


def upcoming_week(
    coming: Mapping[str, DueCount], today: dt.date, returning: int
) -> tuple[UpcomingDay, ...]:
    """Return today with the cards `returning` in the queue, and the six days after it."""
    count = dict.fromkeys(range(7), 0)
    for day, row in coming.items():
        ahead = (dt.date.fromisoformat(day) - today).days
        if ahead in count:
            count[ahead] += row.cards
    count[0] = returning
    return tuple(
        UpcomingDay(today + dt.timedelta(days=n), cards, n == 0) for n, cards in count.items()
    )


HEIGHT = 112


@dataclasses.dataclass(frozen=True, slots=True)
class ObjectiveColumn:
    """One objective: its chance of a right answer (0..1), and its label `words`.

    `look` is fill, mark for the page read last, and none for an untested objective at the guess
    rate.
    """

    number: str
    title: str
    address: str
    chance: float
    look: str
    words: str
    here: bool


@dataclasses.dataclass(frozen=True, slots=True)
class BlueprintDomain:
    """A domain with its columns; `share` is its part of the exam or of the score.

    `fifth` is that part in steps of 5%, which the style sheet turns into a width.
    """

    number: str
    title: str
    share: str
    fifth: int
    columns: tuple[ObjectiveColumn, ...]
    svg: Markup


def blueprint_domains(
    domains: Sequence[DomainMastery],
    here: Collection[str],
    ahead: ScoreForecast | None,
    target: int | None,
) -> tuple[BlueprintDomain, ...]:
    """Return the blueprint map; `here` are the objectives of the page read last.

    The filled area is the expected score, shown by domain once there is enough evidence. Before the
    learner has started, objectives have no labels.
    """
    begun = any(s.started for d in domains for s in d.standings)
    parts: Mapping[str, DomainForecast] = ahead.parts if ahead else {}
    return tuple(
        _blueprint_domain(
            domain,
            _objective_columns(domain, here, begun=begun),
            parts.get(domain.domain.number),
            target,
        )
        for domain in domains
    )


def _blueprint_domain(
    domain: DomainMastery,
    columns: tuple[ObjectiveColumn, ...],
    part: DomainForecast | None,
    target: int | None,
) -> BlueprintDomain:
    begun = any(c.words for c in columns)
    said = "; ".join(f"{c.number} {c.words}" for c in columns)
    share = f"{format_percent(domain.domain.weight)} of the exam"
    if part is not None:
        share = f"{part.expected:.1f} of {part.questions}"
        said = f"{share} expected; {said}"
    sentence = said if begun else "nothing is started yet"
    return BlueprintDomain(
        number=domain.domain.number,
        title=domain.domain.title,
        share=share,
        fifth=max(5, round(domain.domain.weight * 20) * 5),
        columns=columns,
        svg=_draw_domain(columns, target, f"{domain.domain.title}: {sentence}"),
    )


def _draw_domain(columns: Sequence[ObjectiveColumn], target: int | None, says: str) -> Markup:
    wide = 100 / max(1, len(columns))
    marks = []
    for place, column in enumerate(columns):
        marks += _objective_bar(column, place * wide, wide)
    if target:
        at = HEIGHT - HEIGHT * target / 100
        marks.append(draw_line("dash", 0, at, 100, at))
    return svg_root(marks, HEIGHT + 24, says)


def _objective_bar(column: ObjectiveColumn, x: float, wide: float) -> list[str]:
    """Draw the column filled up to the chance of a right answer, with its number below."""
    full = HEIGHT * column.chance
    top = HEIGHT - full
    marks = [draw_rect("bg tank", x, 0, wide, HEIGHT)]
    if full >= 0.01:
        marks.append(draw_rect(f"{column.look} tank", x, top, wide, full))
        marks.append(draw_line("edge", x, top, x + wide, top))
    return [*marks, draw_text(column.number, x + wide / 2, HEIGHT + 17, "m")]


def _objective_columns(
    domain: DomainMastery, here: Collection[str], *, begun: bool
) -> tuple[ObjectiveColumn, ...]:
    """Return the columns of a domain; unlabeled before the learner has started."""
    made = (_objective_column(standing, here if begun else ()) for standing in domain.standings)
    return tuple(c if begun else dataclasses.replace(c, words="") for c in made)


def _objective_column(standing: ObjectiveMastery, here: Collection[str]) -> ObjectiveColumn:
    number = standing.objective.number
    current = number in here
    tested = standing.evidence.answers > 0
    return ObjectiveColumn(
        number=number,
        title=standing.objective.name,
        address=_objective_url(standing),
        chance=standing.belief.mean,
        look=("mark" if current else "fill") if tested else "none",
        words=_describe_objective(standing),
        here=current,
    )


def _objective_url(standing: ObjectiveMastery) -> str:
    if standing.topics:
        return f"/concepts/{standing.topics[0].slug}"
    return f"/course#o{standing.objective.number}"


def _describe_objective(standing: ObjectiveMastery) -> str:
    return standing.unjudged_reason or format_percent(standing.belief.mean)


router = APIRouter()


@dataclasses.dataclass(frozen=True, slots=True)
class TodayCards:
    """Today's cards, and a sentence about the plan if an exam is ahead."""

    left: CardsLeft = dataclasses.field(default_factory=CardsLeft)
    sentence: str = ""


@router.get("/", name="today", dependencies=[Depends(log_prediction)])
def show_today(request: Request, snapshot: CurrentSnapshot, db: DbSession) -> HTMLResponse:
    if not snapshot.learner.id:
        return _show_first_visit(
            request, snapshot, _today_context(snapshot, TodaySoFar(), TodayCards())
        )
    day = snapshot.day
    days = store.study_days(db, snapshot.learner.id, first_log_day(day))
    done = days.recent.get(day.isoformat())
    pace = store.cached_pace(db, snapshot.learner, snapshot.library, day)
    placing, left_run = unfinished_runs(snapshot, db)
    so_far = TodaySoFar(
        answered=done.milliseconds / 60_000 if done else 0.0,
        read=read_today(snapshot, pace),
        sat=_last_exam_day(snapshot, db),
        pace=pace,
        running=running_exam(snapshot, db),
        placing=placing,
        left_run=left_run,
    )
    desk = RequestContext(request, snapshot.library, snapshot.learner, db, snapshot.now)
    stack = todays_queue(desk)
    cards = TodayCards(stack.left, until_exam(desk, stack))
    shown = _today_context(snapshot, so_far, cards)
    if snapshot.is_new and so_far.running is None:
        return _show_first_visit(request, snapshot, shown)
    begun = days.first or day
    log = study_log(days.counts, day, begun) if snapshot.learner.calendar else None
    return render_page(request, "progress/today.html", log=log, **shown)


def _show_first_visit(
    request: Request, snapshot: LearnerSnapshot, shown: dict[str, Any]
) -> HTMLResponse:
    """The page of a first visit."""
    minutes, exam = snapshot.learner.minutes_a_day, main_exam(snapshot.library)
    welcome = first_visit_info(snapshot.library, exam, minutes, snapshot.learner.key)
    return render_page(request, "progress/first.html", welcome=welcome, token=new_token(), **shown)


def _last_exam_day(snapshot: LearnerSnapshot, db: Session) -> dt.date | None:
    """Return the study day of the last mock exam, if the plan may have one today."""
    sat = store.last_sat(db, snapshot.learner.id) if may_sit_today(snapshot) else None
    return snapshot.learner.study_day(from_milliseconds(sat)) if sat else None


def _today_context(
    snapshot: LearnerSnapshot, so_far: TodaySoFar, cards: TodayCards
) -> dict[str, Any]:
    library, learner = snapshot.library, snapshot.learner
    last = snapshot.pages[0].topic if snapshot.pages else ""
    topic = library.topics.get(last)
    made = today_plan(snapshot, cards.left, so_far)
    exam = learner.exam_day
    return {
        "learner": learner,
        "syllabus": library.syllabus,
        "day": snapshot.day,
        "days_left": (exam - snapshot.day).days if exam else None,
        "plan": made,
        "placing": so_far.placing,
        "spent": so_far.shown,
        "minutes": learner.minutes_on(snapshot.day),
        "off": learner.is_off(snapshot.day),
        "answered": format_duration(so_far.answered) if so_far.answered else "",
        "read": format_duration(so_far.read) if so_far.read else "",
        "left": cards.left,
        "over": over_words(cards.left.over, cards.left.passed),
        "missed": count_missed(library, snapshot.record.firsts),
        "question_minutes": so_far.pace.question_minutes,
        "ahead": snapshot.ahead,
        "ahead_drawn": snapshot.ahead_drawn,
        "lacking": snapshot.lacking,
        "chance": snapshot.chance,
        "plots": blueprint_domains(
            snapshot.domains,
            topic.objectives if topic else (),
            snapshot.ahead,
            learner.target,
        ),
        "week": upcoming_week(snapshot.coming, snapshot.day, cards.left.returning),
        "recent": _recent_pages(snapshot),
        "until_exam": cards.sentence,
    }


def _read_share_text(topic: Topic, sections: Collection[str]) -> str:
    """Return how much of a page was read, in the wording of the Course page."""
    named = readable_anchors(topic)
    done = sum(anchor in sections for anchor in named)
    if done == len(named):
        return "read"
    return f"{done} of {len(named)} sections read, the last" if done else "opened"


def _recent_pages(snapshot: LearnerSnapshot) -> Sequence[dict[str, Any]]:
    """Return the pages read last, each with its study day."""
    return [
        {
            "topic": snapshot.library.topics[row.topic],
            "what": _read_share_text(snapshot.library.topics[row.topic], row.sections),
            "ago": (snapshot.day - snapshot.learner.study_day(from_milliseconds(row.at))).days,
            "day": snapshot.learner.study_day(from_milliseconds(row.at)),
        }
        for row in snapshot.pages[:4]
        if row.topic in snapshot.library.topics
    ]
