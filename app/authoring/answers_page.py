"""Author routes: what was answered to a question, and “Accept this one”."""

import datetime as dt
import time
from typing import Annotated, Literal
from urllib.parse import quote

from fastapi import APIRouter, Form, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse
from pydantic import BaseModel, Field, field_validator

from app.accounts.author_access import AuthorOnlyRoute, CurrentAuthor
from app.accounts.author_store import AuditRecord, record_audit_entry
from app.accounts.current_learner import ReadContext
from app.authoring import store
from app.authoring.course_report import CourseWithDrafts
from app.authoring.preview import build_author_url
from app.authoring.regrading import preview_regrade, write_regrades_of_preview
from app.authoring.response_table import (
    ResponseOutcome,
    TextToAccept,
    add_text_to_key_in_source,
    build_response_table,
    does_key_accept,
)
from app.authoring.store import AnswerFilter
from app.clock import Now
from app.content.file_reader import parse_file
from app.content.file_watcher import locate_course_file
from app.content.live_courses import LiveCourse
from app.content.parse_cache import replace_file_atomically
from app.database.engine import OpenWriteSession, open_read_only_session
from app.errors import ConflictError
from app.questions import types
from app.questions.model import Question
from app.questions.question_form import make_question_title
from app.questions.question_type import MAX_RESPONSE_LENGTH
from app.web.dependencies import require_question

answers_router = APIRouter(route_class=AuthorOnlyRoute)
_MAX_SECONDS_UNTIL_LIVE = 5.0  # seconds until a saved file is live

_EARLIEST, _LATEST = dt.date(2000, 1, 1), dt.date(2200, 1, 1)
Day = Annotated[dt.date, Field(ge=_EARLIEST, le=_LATEST)]
CONTEXTS = {
    "page": "on its page",
    "quiz": "as a single question",
    "practice": "in practice",
    "placement": "in the placement check",
    "exam": "in mock exams",
}


class AnswerFilterForm(BaseModel):
    """Which answers to show; an empty date does not limit. `graded` counts those regraded."""

    since: Day | None = None
    until: Day | None = None
    joined_since: Day | None = None
    joined_until: Day | None = None
    context: Literal["", "page", "quiz", "practice", "placement", "exam"] = ""
    repeated: bool = False
    accepted: str = Field("", max_length=MAX_RESPONSE_LENGTH)
    graded: int = Field(0, ge=0, le=2**31)

    @field_validator("since", "until", "joined_since", "joined_until", mode="before")
    @classmethod
    def _empty_is_none(cls, value: object) -> object:
        return value or None

    @property
    def answer_filter(self) -> AnswerFilter:
        days = (self.since, self.until, self.joined_since, self.joined_until)
        return AnswerFilter(*days, self.context, self.repeated)


class AcceptAnswerForm(BaseModel):
    """The text to accept, in the gap with this key; `revision` is what the author saw."""

    answer: str = Field(min_length=1, max_length=MAX_RESPONSE_LENGTH)
    gap: str = Field("", max_length=200)
    revision: str = Field(max_length=64)


@answers_router.get("/questions/{item}/answers")
def show_answers(
    context: ReadContext,
    item: str,
    course: CourseWithDrafts,
    query: Annotated[AnswerFilterForm, Query()],
) -> HTMLResponse:
    """Every response to a question, grouped by how the current key grades it."""
    question = require_question(course, item)
    answers = store.list_logged_answers(
        context.db, context.learner.course_name, question.id, query.answer_filter
    )
    return context.render_page(
        "authoring/answers.html",
        question=question,
        url=build_author_url(question),
        title=make_question_title(question),
        right=types.question_type_of(question).right_answer_texts(question.answer),
        columns=types.question_type_of(question).result_column_titles(question.answer),
        table=build_response_table(question, answers),
        query=query,
        filtered=query.answer_filter != AnswerFilter(),
        contexts=CONTEXTS,
        outcomes=_OUTCOME_LABELS,
    )


_OUTCOME_LABELS = {
    ResponseOutcome.ACCEPTED: "Right",
    ResponseOutcome.PARTLY: "Partly right",
    ResponseOutcome.FORESEEN: "Foreseen mistake",
    ResponseOutcome.OTHER: "Wrong, not foreseen",
}


@answers_router.post("/questions/{item}/acceptance")
async def accept_answer_and_regrade(
    request: Request,
    item: str,
    course: CourseWithDrafts,
    author: CurrentAuthor,
    now: Now,
    form: Annotated[AcceptAnswerForm, Form()],
) -> RedirectResponse:
    """Write an accepted answer into the file, then regrade the answers given before."""
    question = require_question(course, item)
    if form.revision != question.revision:
        raise ConflictError(
            "The question was edited while this page was open. Nothing was changed.",
            "Look at its answers again.",
        )
    accepted = TextToAccept(" ".join(form.answer.split()), form.gap)
    live: LiveCourse = request.state.live
    live_question = await run_in_threadpool(
        _write_accepted_answer_and_wait_until_live, live, question, accepted
    )
    regraded_count = 0
    write_session: OpenWriteSession = request.app.state.open_write_session
    if live_question.status == "live":
        course_name: str = request.state.course_name
        async with open_read_only_session(request) as db:
            preview = await run_in_threadpool(preview_regrade, db, course_name, live_question)
        async with write_session() as db:
            regraded_count = await run_in_threadpool(
                write_regrades_of_preview, db, course_name, preview, author.id, now
            )
    async with write_session() as db:
        subject = f"“{accepted.text}” of {question.id}"[:120]
        record_audit_entry(db, AuditRecord(now, author.id, "answer accepted", subject))
    query = f"accepted={quote(accepted.text)}&graded={regraded_count}"
    return RedirectResponse(f"/authoring/questions/{quote(item)}/answers?{query}", 303)


def _write_accepted_answer_and_wait_until_live(
    live_course: LiveCourse, question: Question, text_to_accept: TextToAccept
) -> Question:
    """Write the file and return the question as it is live afterward.

    Nothing is written unless the question is sound with the new key and accepts the text.
    """
    path = question.place.path
    file = locate_course_file(live_course.folder, path)
    try:
        source = file.read_bytes().decode("utf-8")
    except (OSError, ValueError) as error:
        raise ConflictError(f"{path} cannot be read: {error}.") from None
    new_source = add_text_to_key_in_source(source, question, text_to_accept)
    parsed = parse_file(new_source, path)
    errors = [p for p in parsed.problems if p.item == question.id and p.severity == "error"]
    new_question = next((q for q in parsed.questions if q.id == question.id), None)
    if errors or new_question is None or not does_key_accept(new_question, text_to_accept):
        reason = errors[0].message if errors else "It would not be read as an answer."
        raise ConflictError(
            f"“{text_to_accept.text}” cannot be accepted. {reason}",
            f"Change the question by hand at {path}:{question.place.line}.",
        )
    try:
        replace_file_atomically(file, new_source.encode())
    except OSError as error:
        raise ConflictError(
            f"{path} cannot be written: {error.strerror or error}.",
            f"Add the answer by hand at {path}:{question.place.line}.",
        ) from None
    deadline = time.monotonic() + _MAX_SECONDS_UNTIL_LIVE
    while time.monotonic() < deadline:
        current = live_course.get_current_course().with_drafts().questions.get(question.id)
        if current is not None and current.revision != question.revision:
            return current
        time.sleep(0.02)
    raise ConflictError(
        "The answer is in the file, and the course has not been read again yet.",
        "Grade earlier answers again from the page of the question.",
    )
