"""The home of mock exams: what can be sat, what papers draw from, what came of them."""

import dataclasses
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from app.content.live.library import Library
from app.content.model import ExamBlueprint
from app.errors import NotFoundError
from app.exams import shorter_exams, store
from app.exams.paper import as_in_exam, drawable
from app.exams.sitting import askable
from app.exams.store import SittingState
from app.exams.trend import PastSitting, trend_of
from app.learners.desk import RequestContext
from app.learners.store.under_exam import in_past_exams
from app.mastery.bank import domain_of, reserved_for_exams
from app.questions.model import Question
from app.quiz.store import history


@dataclasses.dataclass(frozen=True, slots=True)
class ExamOffer:
    """An exam as it can be begun, and the questions that it draws from."""

    exam: ExamBlueprint
    questions: Sequence[Question]


def home_of(desk: RequestContext, running: SittingState | None) -> dict[str, Any]:
    """All that the home shows."""
    whole = sorted(desk.library.exams.values(), key=lambda e: (-e.questions, e.slug))
    finished = [_past(desk.library, *one) for one in _finished(desk)]
    held = _bank(desk)
    return {
        "whole": whole,
        "cuts": list(_cuts(desk, whole[0], held)) if whole else [],
        "missed": held.missed_of(whole[0]) if whole else 0,
        "bank": bank_rows(desk.library),
        "kept": len(reserved_for_exams(desk.library, _met(desk))),
        "running": running,
        "finished": finished,
        "trend": trend_of(finished, desk.learner.target, desk.learner.study_day),
    }


def _met(desk: RequestContext) -> Collection[str]:
    return in_past_exams(desk.db, desk.learner.id, desk.now)


def bank_rows(library: Library) -> list[tuple[str, float, int]]:
    """What papers draw from unless all kinds are asked for, by domain.

    Title, weight and questions of each.
    """
    domains, there = domain_of(library), askable(library)
    for exam in sorted(library.exams.values(), key=lambda e: -e.questions)[:1]:
        there = tuple(as_in_exam(there, domains, exam.domains))
    held = drawable(there, domains)
    return [
        (f"{d.number} {d.title}", d.weight, len(held.get(d.number, ())))
        for d in library.syllabus.domains
    ]


def paper_of(desk: RequestContext, slug: str) -> ExamOffer:
    """The exam of an address, or one cut from it; raises NotFound."""
    there = askable(desk.library)
    exam = desk.library.exams.get(slug)
    if exam is None:
        base = desk.library.exams.get(shorter_exams.whole_of(slug))
        made = _cuts(desk, base, _bank(desk)) if base else ()
        exam = next((cut for cut in made if cut.slug == slug), None)
    if exam is None:
        raise NotFoundError(f"There is no mock exam “{slug}”.")
    return ExamOffer(exam, _missed(desk, there) if shorter_exams.asks_missed(slug) else there)


def title_of(library: Library, slug: str) -> str:
    """What an exam is called, also one that was cut from another."""
    titles = {domain.number: domain.title for domain in library.syllabus.domains}
    return shorter_exams.named(slug, library.exams, titles)


def _cuts(
    desk: RequestContext, exam: ExamBlueprint, bank: shorter_exams.QuestionPool
) -> Iterator[ExamBlueprint]:
    return shorter_exams.derived_exams(exam, desk.library.syllabus.domains, bank)


def _bank(desk: RequestContext) -> shorter_exams.QuestionPool:
    there, domains = askable(desk.library), domain_of(desk.library)
    held, missed = (
        {domain: len(mine) for domain, mine in drawable(pool, domains).items()}
        for pool in (there, _missed(desk, there))
    )
    return shorter_exams.QuestionPool(held, missed)


def _missed(desk: RequestContext, there: Sequence[Question]) -> list[Question]:
    past = history(desk.db, desk.learner.id)
    return [q for q in there if q.id in past and past[q.id].missed]


def _finished(desk: RequestContext) -> list[tuple[SittingState, float, int]]:
    return store.finished(desk.db, desk.learner.id) if desk.learner.id else []


def _past(library: Library, sat: SittingState, score: float, answered: int) -> PastSitting:
    used = ((sat.closed_at or sat.deadline) - sat.started_at).total_seconds()
    return PastSitting(
        number=sat.id,
        title=title_of(library, sat.exam),
        whole=sat.exam in library.exams,
        started=sat.started_at,
        score=score,
        questions=len(sat.slots),
        answered=answered,
        minutes=used / 60,
        by_clock=sat.closed_by == "time",
    )
