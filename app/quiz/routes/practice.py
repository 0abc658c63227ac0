"""What there is to practice: by topic, by objective, by what went wrong."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from app.content.model import Domain
from app.errors import NotFoundError
from app.learners.desk import Reader, RequestContext
from app.learners.store.under_exam import in_past_exams
from app.mastery.bank import QuestionCount, domain_of, of_objective, of_topic, reserved_for_exams
from app.mastery.standing import DomainMastery, ObjectiveMastery
from app.questions.asking import new_token, title_of
from app.questions.model import Question
from app.quiz import store
from app.quiz.practice import PastAttempts
from app.quiz.showing import excluded_questions
from app.quiz.store import PracticeRunState
from app.quiz.weakest import standing_of
from app.web.course import find_topic
from app.web.page_cache import allow_caching

router = APIRouter()
Count = Annotated[int, Query(ge=1, le=100)]


@dataclasses.dataclass(frozen=True, slots=True)
class ObjectivePractice:
    """An objective: where the learner stands in it, and its questions counted."""

    standing: ObjectiveMastery
    tally: QuestionCount


@dataclasses.dataclass(frozen=True, slots=True)
class DomainPractice:
    """A domain with its objectives; a question of two of them counts once."""

    domain: Domain
    goals: tuple[ObjectivePractice, ...]
    tally: QuestionCount


@dataclasses.dataclass(frozen=True, slots=True)
class _OpenRun:
    """A run that was left: so many of its questions are answered."""

    id: int
    mode: str
    answered: int
    count: int


@router.get("")
def index(desk: Reader) -> HTMLResponse:
    """Every way to practice, with what there is of it."""
    # What is weakest fades from day to day.
    allow_caching(desk.request, desk.learner.next_study_day(desk.now))
    past = store.history(desk.db, desk.learner.id)
    questions = list(desk.library.questions.values())
    kept = _kept(desk)
    newest = store.newest_run(desk.db, desk.learner.id)
    domains, order = standing_of(desk)
    return desk.page(
        "quiz/index.html",
        all=_tally(questions, past),
        kept=len(kept),
        fresh=sum(q.id not in past and q.id not in kept for q in questions),
        topics=_by_topic(desk, past),
        domains=_by_objective(desk, past, domains),
        weakest=order[0] if order and past else None,
        run=_unfinished(newest),
        flagged=len(store.flagged(desk.db, desk.learner.id) & desk.library.questions.keys()),
        token=new_token(),
    )


@router.get("/objectives/{number}")
def objective(desk: Reader, number: str, count: Count = 10) -> HTMLResponse:
    """The questions of one objective from all its pages; a run of them is offered."""
    goals = (o for d in desk.library.syllabus.domains for o in d.objectives)
    found = next((goal for goal in goals if goal.number == number), None)
    if found is None:
        raise NotFoundError(f"This course has no objective “{number}”.")
    title = f"{found.number} {found.name}"
    questions = of_objective(desk.library, number)
    return _offered(desk, title, f"objective:{number}", questions, count)


@router.get("/{topic}")
def topic(desk: Reader, topic: str, count: Count = 10) -> HTMLResponse:
    """The questions of one topic and how they went; a run of so many is offered."""
    title = find_topic(desk.library, topic).title
    questions = of_topic(desk.library, topic)
    return _offered(desk, title, f"topic:{topic}", questions, count)


def _offered(
    desk: RequestContext, title: str, pick: str, questions: Iterable[Question], count: int
) -> HTMLResponse:
    """Questions and how they went; a run of so many of them begins with `pick`."""
    allow_caching(desk.request)
    mode, _, scope = pick.partition(":")
    past = store.history(desk.db, desk.learner.id)
    kept, hidden = _kept(desk), excluded_questions(desk)
    rows = [
        {
            "address": f"/quiz/{q.topic}/{q.id}",
            "words": title_of(q),
            "past": past.get(q.id),
            "level": q.level,
        }
        for q in sorted(questions, key=lambda q: q.level)
        if q.id not in hidden
    ]
    return desk.page(
        "quiz/topic.html",
        title=title,
        pick=pick,
        page=scope if mode == "topic" else "",
        all=_tally(questions, past),
        rows=rows,
        count=min(len(rows), count),
        kept=sum(q.id in kept for q in questions),
        token=new_token(),
    )


def _kept(desk: RequestContext) -> frozenset[str]:
    """The questions that are kept for mock exams to come."""
    met = in_past_exams(desk.db, desk.learner.id, desk.now)
    return reserved_for_exams(desk.library, met)


def _tally(questions: Iterable[Question], past: Mapping[str, PastAttempts]) -> QuestionCount:
    pool = list(questions)
    seen = [past[q.id] for q in pool if q.id in past]
    return QuestionCount(len(pool), len(seen), sum(not p.missed for p in seen))


def _by_topic(
    desk: RequestContext, past: Mapping[str, PastAttempts]
) -> list[tuple[str, str, QuestionCount]]:
    """Topics in reading order that have questions: slug, title, tally."""
    library = desk.library
    order = [s for s in library.syllabus.topics if s in library.topics]
    order += [s for s in library.topics if s not in order]
    rows = []
    for slug in order:
        pool = of_topic(library, slug)
        if pool:
            rows.append((slug, library.topics[slug].title, _tally(pool, past)))
    return rows


def _by_objective(
    desk: RequestContext, past: Mapping[str, PastAttempts], domains: Iterable[DomainMastery]
) -> list[DomainPractice]:
    """The domains, each with the objectives that have questions."""
    parts, there = [], domain_of(desk.library)
    home = {q.id: q.home(there) for q in desk.library.questions.values()}
    for domain in domains:
        goals = [
            ObjectivePractice(standing, _tally(pool, past))
            for standing in domain.standings
            if (pool := of_objective(desk.library, standing.objective.number))
        ]
        whole = [q for q, at in home.items() if at == domain.domain.number]
        mine = _tally((desk.library.questions[q] for q in whole), past)
        parts.append(DomainPractice(domain.domain, tuple(goals), mine))
    return [part for part in parts if part.goals]


def _unfinished(run: PracticeRunState | None) -> _OpenRun | None:
    if run is None or len(run.answers) >= len(run.items):
        return None
    return _OpenRun(run.id, run.mode, len(run.answers), len(run.items))
