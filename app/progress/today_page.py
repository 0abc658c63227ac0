"""The Today page: the day's list, the expected score, the blueprint map, the first visit."""

import dataclasses
import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from app.accounts.current_learner import Reader, RequestContext
from app.clock import from_milliseconds, to_milliseconds
from app.content.blueprint import main_exam, readable_anchors
from app.content.course_facts import course_facts
from app.content.library import Library
from app.markup.model import Domain, ExamBlueprint, Objective, Topic
from app.progress import history_store as history
from app.progress.history_store import DueCount, OpenPlacementTest, OpenSitting
from app.progress.study_log import first_log_day, study_log
from app.questions.question_form import new_token
from app.quiz.selection import draw_placement
from app.spaced_repetition.queue import orphaned_cards
from app.spaced_repetition.todays_queue import todays_queue
from app.study_plan.day_list import TickedTask
from app.study_plan.loader import (
    DayListEnsured,
    StudyPlan,
    listed_cards,
    load_plan,
)
from app.study_plan.score import ObjectiveEstimate, ScoreEstimate
from app.web.formatting import format_percent
from app.web.render import render_page
from app.widgets.column_charts import ScoreRange, draw_score
from app.widgets.svg import draw_line, draw_rect, draw_text, svg_root

PLACEMENT_QUESTION_MINUTES = 1.0


@dataclasses.dataclass(frozen=True, slots=True)
class FirstVisitInfo:
    """The first-visit summary: the exam, the placement test and the first page.

    `exam` is the mock with the format of the exam, None if the course has none. `placement` is the
    number of questions in the test, `minutes` how long it takes.
    """

    exam: ExamBlueprint | None
    domains: Sequence[Domain]
    placement: int
    minutes: float
    first: Topic | None

    @property
    def objectives(self) -> int:
        """The number of objectives in all domains."""
        return sum(len(domain.objectives) for domain in self.domains)

    @property
    def seconds(self) -> int:
        """The seconds per question of the exam."""
        return round(60 * self.exam.minutes / self.exam.questions) if self.exam else 0


def first_visit_info(library: Library, exam: ExamBlueprint | None, seed: str) -> FirstVisitInfo:
    """Return the first-visit summary."""
    domains = library.syllabus.domains
    drawn = draw_placement(list(library.questions.values()), domains, {}, seed)
    order = [library.topics[s] for s in library.syllabus.topics if s in library.topics]
    return FirstVisitInfo(
        exam=exam,
        domains=domains,
        placement=len(drawn),
        minutes=len(drawn) * PLACEMENT_QUESTION_MINUTES,
        first=order[0] if order else None,
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
    library: Library,
    estimate: ScoreEstimate | None,
    here: Collection[str],
    target: int | None,
) -> tuple[BlueprintDomain, ...]:
    """Return the blueprint map; `here` are the objectives of the page read last.

    The filled area is the expected score. Without an estimate objectives have no labels.
    """
    guesses = {o.number: o.guess for o in course_facts(library).objectives.values()}
    made = []
    for domain in library.syllabus.domains:
        columns = tuple(
            _objective_column(
                library,
                objective,
                estimate.objectives.get(objective.number) if estimate else None,
                guesses.get(objective.number, 0.0),
                here,
            )
            for objective in domain.objectives
        )
        made.append(_blueprint_domain(library, domain, columns, estimate, target))
    return tuple(made)


def _blueprint_domain(
    library: Library,
    domain: Domain,
    columns: tuple[ObjectiveColumn, ...],
    estimate: ScoreEstimate | None,
    target: int | None,
) -> BlueprintDomain:
    said = "; ".join(f"{c.number} {c.words}" for c in columns)
    share = f"{format_percent(domain.weight)} of the exam"
    if estimate is not None and domain.number in estimate.domains:
        facts = next(d for d in course_facts(library).domains if d.number == domain.number)
        share = f"{estimate.domains[domain.number]:.1f} of {facts.questions}"
        said = f"{share} expected; {said}"
    sentence = said if estimate else "nothing is started yet"
    return BlueprintDomain(
        number=domain.number,
        title=domain.title,
        share=share,
        fifth=max(5, round(domain.weight * 20) * 5),
        columns=columns,
        svg=_draw_domain(columns, target, f"{domain.title}: {sentence}"),
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


def _objective_column(
    library: Library,
    objective: Objective,
    estimate: ObjectiveEstimate | None,
    guess: float,
    here: Collection[str],
) -> ObjectiveColumn:
    current = estimate is not None and objective.number in here
    topics = (library.topics.get(slug) for slug in library.syllabus.topics)
    page = next((t for t in topics if t and objective.number in t.objectives), None)
    return ObjectiveColumn(
        number=objective.number,
        title=objective.name,
        address=f"/concepts/{page.slug}" if page else f"/course#o{objective.number}",
        chance=estimate.chance if estimate else guess,
        look=("mark" if current else "fill") if estimate else "none",
        words=format_percent(estimate.chance) if estimate else "",
        here=current,
    )


def draw_estimate(estimate: ScoreEstimate, target: int | None) -> Markup:
    """Render the expected score and its range as SVG; `target` is in percent."""
    of = estimate.questions
    says = f"Expected {estimate.expected} of {of}, most likely {estimate.low} to {estimate.high}"
    label = f"your target {target}%" if target else ""
    score = ScoreRange(
        score=estimate.expected,
        low=estimate.low,
        high=estimate.high,
        of=of,
        target=of * (target or 0) / 100,
        target_words=label,
    )
    return draw_score(score, f"{says}; {label}" if label else says, (0, of // 2, of))


def task_address(task: TickedTask, library: Library, unread: Collection[str]) -> str:
    """Return where a task is done; empty for practice, which starts with a form."""
    if task.kind in {"review", "new"}:
        return "/flashcards"
    if task.kind == "mock":
        return "/exams"
    pages = [page.slug for page in task.task.pages if page.slug in library.topics]
    left = [slug for slug in pages if slug in unread] or pages
    return f"/concepts/{left[0]}" if left else ""


_MINUTE = dt.timedelta(minutes=1)
WEEK = dt.timedelta(days=6)
router = APIRouter()


@router.get("/", name="today")
def show_today(request: Request, desk: Reader, _ensured: DayListEnsured) -> HTMLResponse:
    library, learner, db, day = desk.library, desk.learner, desk.db, desk.day
    running, placing = _open_work(desk)
    plan = load_plan(desk)
    context = _today_context(desk, plan)
    context |= {"running": running, "placing": placing}
    if plan is None and running is None:
        welcome = first_visit_info(library, main_exam(library), learner.key)
        return render_page(
            request, "progress/first.html", welcome=welcome, token=new_token(), **context
        )
    coming, _ = _coming_cards(desk)
    left = todays_queue(desk, listed_cards(desk)).left
    days = history.study_days(db, learner.id, first_log_day(day))
    log = study_log(days.counts, day, days.first or day) if learner.calendar else None
    return render_page(
        request,
        "progress/today.html",
        log=log,
        left=left,
        week=upcoming_week(coming, day, left.returning),
        token=new_token(),
        **context,
    )


def _open_work(desk: RequestContext) -> tuple[OpenSitting | None, OpenPlacementTest | None]:
    """Return the mock exam in progress and the unfinished placement test."""
    db, learner, library = desk.db, desk.learner, desk.library
    if not learner.id:
        return None, None
    running = history.find_running_exam(db, learner.id, to_milliseconds(desk.now))
    if running is not None:
        exam = library.exams.get(running.title)
        running = dataclasses.replace(running, title=exam.title if exam else "Mock exam")
    placing, _ = history.load_unfinished_runs(db, learner.id, library.questions)
    return running, placing


def _coming_cards(desk: RequestContext) -> tuple[Mapping[str, DueCount], dt.datetime]:
    """Return the cards due in a week by day, and when a page with them expires."""
    learner, until = desk.learner, desk.learner.next_study_day(desk.now)
    if not learner.id:
        return {}, until
    span = (desk.day, desk.day + WEEK, to_milliseconds(desk.now))
    gone = orphaned_cards(desk.db, learner.id, desk.library).gone
    coming = history.load_due_counts(desk.db, learner.id, span, gone)
    ends = [from_milliseconds(row.next_at) for row in coming.values() if row.next_at]
    return coming, min([until, *ends])


def _today_context(desk: RequestContext, plan: StudyPlan | None) -> dict[str, Any]:
    library, learner, exam = desk.library, desk.learner, desk.learner.exam_day
    estimate = plan.estimate if plan else None
    pages = history.load_recent_pages(desk.db, learner.id) if learner.id else ()
    last = library.topics.get(pages[0].topic) if pages else None
    unread = {
        page.slug
        for task in (plan.tasks if plan else ())
        for page in task.task.pages
        if not is_page_read(library, pages, page.slug)
    }
    return {
        "learner": learner,
        "library": library,
        "syllabus": library.syllabus,
        "day": desk.day,
        "days_left": (exam - desk.day).days if exam else None,
        "plan": plan,
        "addresses": {
            task.kind: task_address(task, library, unread) for task in (plan.tasks if plan else ())
        },
        "unread": unread,
        "progress": plan.progress if plan else None,
        "minutes": learner.minutes_on(desk.day),
        "ahead": estimate,
        "ahead_drawn": draw_estimate(estimate, learner.target) if estimate else "",
        "chance": describe_chance(estimate, learner.target),
        "plots": blueprint_domains(
            library, estimate, last.objectives if last else (), learner.target
        ),
        "recent": _recent_pages(desk, pages),
    }


def is_page_read(library: Library, pages: Sequence[history.PageProgress], slug: str) -> bool:
    """Return whether every section of a page is read."""
    sections = next((page.sections for page in pages if page.topic == slug), {})
    topic = library.topics.get(slug)
    return topic is None or all(anchor in sections for anchor in readable_anchors(topic))


_TENTHS = (
    "hardly any chance",
    "about one chance in ten",
    "about two chances in ten",
    "about three chances in ten",
    "about four chances in ten",
    "an even chance",
    "about six chances in ten",
    "about seven chances in ten",
    "about eight chances in ten",
    "about nine chances in ten",
    "more than nine chances in ten",
)


def describe_chance(estimate: ScoreEstimate | None, target: int | None) -> str:
    """Return the chance of reaching a target (percent), to the nearest tenth; "" without one."""
    if estimate is None or target is None:
        return ""
    return _TENTHS[round(10 * min(max(estimate.chance(target / 100), 0.0), 1.0))]


def _read_share_text(topic: Topic, sections: Collection[str]) -> str:
    """Return how much of a page was read, in the wording of the Course page."""
    named = readable_anchors(topic)
    done = sum(anchor in sections for anchor in named)
    if done == len(named):
        return "read"
    return f"{done} of {len(named)} sections read, the last" if done else "opened"


def _recent_pages(
    desk: RequestContext, pages: Sequence[history.PageProgress]
) -> Sequence[dict[str, Any]]:
    """Return the pages read last, each with its study day."""
    return [
        {
            "topic": desk.library.topics[row.topic],
            "what": _read_share_text(desk.library.topics[row.topic], row.sections),
            "ago": (desk.day - desk.learner.study_day(from_milliseconds(row.at))).days,
            "day": desk.learner.study_day(from_milliseconds(row.at)),
        }
        for row in pages[:4]
        if row.topic in desk.library.topics
    ]
