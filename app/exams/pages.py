"""Exam routes: list, start, question, review, submit, report."""

import dataclasses
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from anyio import from_thread
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.accounts.current_learner import Reader, RequestContext, Writer, run_reading, run_writing
from app.accounts.learner_store import in_past_exams
from app.clock import to_milliseconds
from app.content.library import Library
from app.database.engine import write_in_own_transaction
from app.errors import ConflictError, NotFoundError
from app.exams import assembly, store
from app.exams.answer_merge import AnswerState
from app.exams.assembly import PaperItem, as_in_exam, asks_missed, drawable, is_over
from app.exams.forms import (
    EVERY_KIND,
    FACTORS,
    Answered,
    Begun,
    ExamAnswerForm,
    StartExamDraft,
    write_shown,
)
from app.exams.report import (
    GradedItem,
    PastSitting,
    draw_report,
    names_of,
    summarize,
    topics_by_objective,
    trend_of,
)
from app.exams.sitting import (
    NOTHING,
    Filter,
    ReviewNote,
    SittingRequest,
    Told,
    as_graded,
    askable,
    close,
    close_if_over,
    draw_sitting,
    find_unreadable,
    graded_items,
    pace,
    question_of,
    rows,
    start_sitting,
)
from app.exams.store import AnswerChange, NewSitting, SavedAnswer, SittingState
from app.markup.model import ExamBlueprint
from app.mastery.question_counts import domain_of, reserved_for_exams
from app.questions import types
from app.questions.grading import grade_blank
from app.questions.model import Question, Variant
from app.questions.question_form import OpenQuestion, excerpt, new_token
from app.questions.result import UnreadableResponse
from app.questions.variants import draw_variant
from app.quiz.question_page import (
    AnswerFeedback,
    NextLinks,
    build_feedback,
    refuse_during_exam,
    with_comeback,
)
from app.quiz.store import RecordedAttempt, history
from app.spaced_repetition.added_cards import added_cards
from app.spaced_repetition.card_ids import exists_in_course, question_card_id
from app.web.dependencies import RowNumber
from app.web.render import is_htmx_request, render_page


@dataclasses.dataclass(frozen=True, slots=True)
class ExamOffer:
    """An exam that can be started, and the questions that it draws from."""

    exam: ExamBlueprint
    questions: Sequence[Question]


def home_of(desk: RequestContext, running: SittingState | None) -> dict[str, Any]:
    """Return the template variables of the exam home."""
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
    """Return the question types of the real exam, counted by domain: title, weight, questions.

    This is what papers draw from unless all types are requested.
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
    """Return the exam in the URL, or the derived one; raises NotFoundError."""
    there = askable(desk.library)
    exam = desk.library.exams.get(slug)
    if exam is None:
        base = desk.library.exams.get(assembly.whole_of(slug))
        made = _cuts(desk, base, _bank(desk)) if base else ()
        exam = next((cut for cut in made if cut.slug == slug), None)
    if exam is None:
        raise NotFoundError(f"There is no mock exam “{slug}”.")
    return ExamOffer(exam, _missed(desk, there) if assembly.asks_missed(slug) else there)


def title_of(library: Library, slug: str) -> str:
    """Return the title of an exam, derived ones included."""
    titles = {domain.number: domain.title for domain in library.syllabus.domains}
    return assembly.named(slug, library.exams, titles)


def _cuts(
    desk: RequestContext, exam: ExamBlueprint, bank: assembly.QuestionPool
) -> Iterator[ExamBlueprint]:
    return assembly.derived_exams(exam, desk.library.syllabus.domains, bank)


def _bank(desk: RequestContext) -> assembly.QuestionPool:
    there, domains = askable(desk.library), domain_of(desk.library)
    held, missed = (
        {domain: len(mine) for domain, mine in drawable(pool, domains).items()}
        for pool in (there, _missed(desk, there))
    )
    return assembly.QuestionPool(held, missed)


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


router = APIRouter(prefix="/exams", include_in_schema=False)


@router.get("")
def index(desk: Reader) -> HTMLResponse:
    """The mock exams of the course, and the learner's sittings."""
    return desk.page(
        "exams/index.html",
        asks_missed=asks_missed,
        **home_of(desk, _running(desk)),
    )


@router.get("/{exam}")
def start(desk: Reader, exam: str) -> HTMLResponse:
    """The description of an exam, before the clock starts."""
    paper = paper_of(desk, exam)
    aim = math.ceil((desk.learner.target or 0) * paper.exam.questions / 100)
    typed = StartExamDraft(new_token(), target=f"{aim or ''}")
    return _start_page(desk, paper, typed, [], 200)


def _start_page(
    desk: RequestContext,
    paper: ExamOffer,
    typed: StartExamDraft,
    problems: list[dict[str, str]],
    status: int,
) -> HTMLResponse:
    exam = paper.exam
    domains = domain_of(desk.library)
    there = paper.questions
    if typed.kinds != EVERY_KIND:
        there = as_in_exam(there, domains, exam.domains)
    held = drawable(there, domains)
    bank = {domain: len(held.get(domain, ())) for domain in exam.domains}
    return desk.page(
        "exams/start.html",
        status=status,
        exam=exam,
        missed=asks_missed(exam.slug),
        domains=[d for d in desk.library.syllabus.domains if d.number in bank],
        bank=bank,
        short=any(bank[d] < wanted for d, wanted in exam.domains.items()),
        kinds=[("", "Single and multiple choice"), (EVERY_KIND, "All kinds")],
        factors=[(f"{f:g}", _factor_words(f, exam)) for f in FACTORS],
        running=_running(desk),
        typed=typed,
        problems=problems,
    )


@router.post("/{exam}/sittings")
async def add_sitting(request: Request, exam: str, typed: Begun) -> Response:
    """Start the clock, or continue the sitting in progress.

    The paper is drawn before the write transaction, because that reads all earlier papers.
    """
    drawn = await run_reading(request, lambda desk: _draw(desk, exam, typed))
    if isinstance(drawn, Response):
        return drawn
    number = await run_writing(request, lambda desk: _begin(desk, drawn))
    return _first_of(number)


def _draw(desk: RequestContext, exam: str, typed: StartExamDraft) -> NewSitting | Response:
    """Return a paper to start; or the response, if a sitting is in progress or none can be drawn."""
    paper = paper_of(desk, exam)
    running = _running(desk)
    if running is not None:
        return _first_of(running.id)
    if not desk.library.questions:
        raise ConflictError("This course has no questions yet.")
    if problems := typed.problems(paper.exam.questions):
        return _start_page(desk, paper, typed, problems, 422)
    wanted = SittingRequest(paper.exam, paper.questions, typed.wish)
    return draw_sitting(desk.db, desk.library, desk.learner.id, wanted)


def _begin(desk: RequestContext, drawn: NewSitting) -> int:
    """Start the sitting, unless another tab has started one since the paper was drawn."""
    running = store.running(desk.db, desk.learner.id)
    if running is not None:
        return running.id
    return start_sitting(desk.db, desk.library, desk.learner.id, drawn, desk.now)


def _first_of(sitting: int) -> RedirectResponse:
    return RedirectResponse(f"/exams/sittings/{sitting}/questions/1", 303)


@router.get("/sittings/{sitting}/questions/{number}")
def question(
    desk: Reader,
    sitting: RowNumber,
    number: RowNumber,
    reported: bool = False,
    told: Told = "",
) -> Response:
    """One question of the paper; with its feedback after the end.

    `told` is the message code about an answer that was just sent.
    """
    sat = _find(desk, sitting)
    slot = _slot(sat, number)
    if sat.closed_at is not None:
        return _solution(desk, sat, slot, reported=reported)
    frame = _frame(desk, sat, number, ReviewNote(told))
    return desk.page("exams/question.html", asked=_asked(desk, sat, slot, frame), **frame)


@router.post("/sittings/{sitting}/answers/{number}")
def keep_answer(desk: Writer, sitting: RowNumber, number: RowNumber, form: Answered) -> Response:
    """Save what was changed in a question; after the end nothing changes."""
    sat = _find_now(desk, sitting)
    slot = _slot(sat, number)
    if sat.closed_at is not None:
        return _too_late(desk, sat)
    done = store.save_answer(desk.db, sat, _change(desk, slot, form), desk.now)
    frame = _frame(desk, sat, number, ReviewNote(done.told, done.saved_at))
    if is_htmx_request(desk.request):
        status = 409 if done.refused else 200
        return render_page(desk.request, "exams/_saved.html", status=status, **frame)
    if done.replaced or done.refused:
        onward = f"{_onward(sat, number, '')}?told={done.told}"
    elif done.changed and number in frame["unreadable"]:
        onward = _onward(
            sat, number, ""
        )  # the question page shows the problem while there is still time
    else:
        onward = _onward(sat, number, form.go)
    return RedirectResponse(onward, 303)


@router.get("/sittings/{sitting}/review")
def review(desk: Reader, sitting: RowNumber, show: Filter = "all") -> Response:
    """The review screen before the end: what is unanswered, what is flagged."""
    sat = _find(desk, sitting)
    if sat.closed_at is not None:
        return RedirectResponse(f"/exams/sittings/{sat.id}/report", 303)
    kept = store.answers(desk.db, sat.id)
    words = {
        slot.number: excerpt(draw_variant(question_of(desk.db, desk.library, slot), slot.seed).stem)
        for slot in sat.slots
    }
    frame = _frame(desk, sat, 0)
    everything = rows(sat.slots, kept, words, frame["unreadable"])
    return desk.page(
        "exams/review.html",
        show=show,
        rows=[row for row in everything if row.matches(show)],
        **frame,
    )


@router.post("/sittings/{sitting}/submission")
def submit(desk: Writer, sitting: RowNumber) -> Response:
    """Submit the exam; a second submission changes nothing and says so."""
    sat = _find_now(desk, sitting)
    if sat.closed_at is not None:
        return _too_late(desk, sat)
    close(desk.db, desk.library, sat, "learner", desk.now)
    return RedirectResponse(f"/exams/sittings/{sat.id}/report", 303)


@router.get("/sittings/{sitting}/report")
def report(desk: Reader, sitting: RowNumber, late: bool = False) -> Response:
    """The score report, after the end."""
    sat = _find(desk, sitting)
    if sat.closed_at is None:
        return RedirectResponse(f"/exams/sittings/{sat.id}/questions/1", 303)
    paper = graded_items(desk.db, desk.library, sat)
    earlier = [
        (other, score)
        for other, score, _ in store.finished(desk.db, desk.learner.id)
        if other.exam == sat.exam and other.started_at < sat.started_at
    ]
    report = summarize(paper)
    return desk.page(
        "exams/report.html",
        sat=sat,
        title=title_of(desk.library, sat.exam),
        report=report,
        drawn=draw_report(report, paper, sat.target, sat.seconds),
        paper=paper,
        coming=_coming_back(desk, paper),
        syllabus=desk.library.syllabus,
        topics=topics_by_objective(desk.library),
        names=names_of(desk.library),
        earlier=earlier[:5],
        late=late,
        token=new_token(),
    )


def _coming_back(desk: RequestContext, paper: Sequence[GradedItem]) -> int:
    """Return how many of the missed questions became cards of the learner."""
    missed = [question_card_id(m.item) for m in paper if m.score < 1]
    added = added_cards(desk.db, desk.learner.id, missed).values()
    return sum(not a.aside and exists_in_course(desk.library, a.card) for a in added)


def _find(desk: RequestContext, sitting: int) -> SittingState:
    return _in_time(desk, store.find(desk.db, desk.learner.id, sitting))


def _find_now(desk: RequestContext, sitting: int) -> SittingState:
    """Return the sitting for a route that writes, closed if its time is up."""
    sat = store.find(desk.db, desk.learner.id, sitting)
    return close_if_over(desk.db, desk.library, sat, desk.now)


def _running(desk: RequestContext) -> SittingState | None:
    sat = store.running(desk.db, desk.learner.id)
    if sat is None:
        return None
    sat = _in_time(desk, sat)
    return sat if sat.closed_at is None else None


def _in_time(desk: RequestContext, sat: SittingState) -> SittingState:
    """Return the sitting, closed if its time is up, for a route that only reads."""
    if sat.closed_at is not None or not is_over(sat.deadline, desk.now):
        return sat
    # Not in the current read transaction, whose data may be out of date.
    from_thread.run(
        write_in_own_transaction,
        desk.request,
        lambda db: close_if_over(db, desk.library, sat, desk.now),
    )
    desk.db.rollback()
    return store.find(desk.db, desk.learner.id, sat.id)


def _slot(sat: SittingState, number: int) -> PaperItem:
    if not 1 <= number <= len(sat.slots):
        raise NotFoundError(f"This paper has questions 1 to {len(sat.slots)}, no {number}.")
    return sat.slots[number - 1]


def _factor_words(factor: float, exam: ExamBlueprint) -> str:
    words = "the usual time" if factor == 1 else f"{factor:g} times the time"
    return f"{words}, {exam.minutes * factor:g} minutes"


def _change(desk: RequestContext, slot: PaperItem, form: ExamAnswerForm) -> AnswerChange:
    variant = draw_variant(question_of(desk.db, desk.library, slot), slot.seed)
    return AnswerChange(
        number=slot.number,
        sent=_state(variant, form),
        shown=_state(variant, form.shown) if form.shown else AnswerState(),
        independent=types.type_of(variant).independent,
        since=form.since,
        age=form.age,
    )


def _state(variant: Variant, form: ExamAnswerForm) -> AnswerState:
    kind = types.type_of(variant)
    raw = kind.moved(form.raw, form.move) if form.move else form.raw
    said = form.settled if raw == form.raw else "yes"
    raw = kind.settled(variant.answer, raw, said)
    return AnswerState(raw, form.flagged, form.struck)


def _onward(sat: SittingState, number: int, go: str) -> str:
    """Return the URL for the button that was pressed."""
    last = len(sat.slots)
    if go == "review" or (go == "next" and number == last):
        return f"/exams/sittings/{sat.id}/review"
    target = {"next": number + 1, "previous": number - 1}.get(go, number)
    if go.isascii() and go.isdigit():
        target = int(go)
    return f"/exams/sittings/{sat.id}/questions/{min(max(target, 1), last)}"


def _too_late(desk: RequestContext, sat: SittingState) -> Response:
    if is_htmx_request(desk.request):
        return render_page(desk.request, "exams/_closed.html", status=409, sat=sat)
    return RedirectResponse(f"/exams/sittings/{sat.id}/report?late=1", 303)


def _asked(
    desk: RequestContext, sat: SittingState, slot: PaperItem, frame: Mapping[str, Any]
) -> OpenQuestion:
    kept: SavedAnswer = frame["kept"]
    why: UnreadableResponse | None = frame["unreadable"].get(slot.number)
    return OpenQuestion(
        variant=draw_variant(question_of(desk.db, desk.library, slot), slot.seed),
        token="",
        context="exam",
        place=slot.number,
        since=to_milliseconds(desk.now),
        typed=kept.raw if kept.answered else {},
        refused=why.message if why else "",
        at=f"/exams/sittings/{sat.id}/answers/{slot.number}",
    )


def _frame(
    desk: RequestContext, sat: SittingState, number: int, note: ReviewNote = NOTHING
) -> dict[str, Any]:
    """Return the template variables of the exam bar, the palette and the note of a question."""
    kept = store.answers(desk.db, sat.id)
    unreadable = find_unreadable(desk.db, desk.library, sat, kept)
    palette = rows(sat.slots, kept, {}, unreadable)
    answered = sum(row.answered for row in palette)
    mine = kept.get(number) or SavedAnswer(number, {})
    return {
        "sat": sat,
        "title": title_of(desk.library, sat.exam),
        "number": number,
        "palette": palette,
        "answered": answered,
        "unreadable": unreadable,
        "flagged": sum(row.flagged for row in palette),
        "saved": max((k.at for k in kept.values() if k.at), default=None),
        "left": max(0, int((sat.deadline - desk.now).total_seconds())),
        "since": to_milliseconds(desk.now),
        "pace": pace(sat, answered, desk.now),
        "kept": mine,
        "shown": write_shown(mine.state),
        "note": note,
    }


def _solution(
    desk: RequestContext, sat: SittingState, slot: PaperItem, *, reported: bool
) -> HTMLResponse:
    refuse_during_exam(desk, question_of(desk.db, desk.library, slot))
    paper = {row.number: row for row in graded_items(desk.db, desk.library, sat)}
    return desk.page(
        "exams/solution.html",
        outcome=with_comeback(desk, _outcome(desk, sat, slot)),
        reported=reported,
        sat=sat,
        number=slot.number,
        palette=[paper[s.number] for s in sat.slots],
        result=paper[slot.number].result,
    )


def _outcome(desk: RequestContext, sat: SittingState, slot: PaperItem) -> AnswerFeedback:
    given = store.item_scores(desk.db, sat).get(slot.item)
    kept = store.answers(desk.db, sat.id).get(slot.number) or SavedAnswer(slot.number, {})
    graded = as_graded(slot, given)
    question = question_of(desk.db, desk.library, graded)
    answer = RecordedAttempt(
        given.attempt if given else 0,
        slot.item,
        question.topic,
        graded.revision,
        slot.seed,
        kept.raw,
        given.score if given else 0.0,
        None,
        "exam",
        None,
        0,
        regraded=given is not None and given.before is not None,
    )
    here = f"/exams/sittings/{sat.id}/questions/{slot.number}"
    way = NextLinks(here=here, token=new_token())
    outcome = build_feedback(desk.db, desk.library, answer, way)
    if given is None:
        verdict = grade_blank(outcome.variant)
        return dataclasses.replace(outcome, verdict=verdict)
    return outcome
