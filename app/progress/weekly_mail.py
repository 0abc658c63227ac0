"""The weekly summary by mail: its address, what it says, and the loop that sends it on Mondays.

Nothing is sent to an address before somebody confirmed it there.
"""

import asyncio
import contextlib
import dataclasses
import datetime as dt
import email.message
import logging
import secrets
import smtplib
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Literal, NamedTuple
from urllib.parse import unquote, urlsplit

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import Session

from app.accounts.current_learner import (
    CurrentLearner,
    RequestContext,
    WriteContext,
    load_learner_by_id,
)
from app.accounts.learner_store import update_learner_columns
from app.clock import Now
from app.content.course import Course
from app.content.live_courses import CourseRegistry
from app.database.engine import WRITE_OPTIONS, DbSession
from app.errors import InvalidInputError, NotFoundError
from app.progress import store
from app.progress.study_record import load_study_record, summarize_last_seven_days
from app.study_plan.loader import load_study_plan
from app.web.formatting import NBSP, format_count_with_noun, format_date_with_weekday
from app.web.render import render_page

_CHECK_INTERVAL_SECONDS = 60.0
_SMTP_TIMEOUT_SECONDS = 30.0
_MAX_ADDRESS_LENGTH = 254
_log = logging.getLogger("headroom")


@dataclasses.dataclass(frozen=True, slots=True)
class MailServer:
    """Where mails are sent from. `smtp_url` is smtp://user:password@host:port, or smtps:// for TLS."""

    smtp_url: str
    sender: str
    app_base_url: str

    def send(self, recipient: str, subject: str, text: str, unsubscribe_url: str) -> None:
        """Send a mail; raises OSError or SMTPException."""
        message = email.message.EmailMessage()
        message["From"], message["To"], message["Subject"] = self.sender, recipient, subject
        message["List-Unsubscribe"] = f"<{unsubscribe_url}>"
        message.set_content(text)
        parts = urlsplit(self.smtp_url)
        secure = parts.scheme == "smtps"
        connect = smtplib.SMTP_SSL if secure else smtplib.SMTP
        port = parts.port or (465 if secure else 25)
        with connect(parts.hostname or "localhost", port, timeout=_SMTP_TIMEOUT_SECONDS) as server:
            if not secure and server.has_extn("starttls"):
                server.starttls()
            if parts.username:
                server.login(unquote(parts.username), unquote(parts.password or ""))
            server.send_message(message)


class MailText(NamedTuple):
    """The subject of a mail and its text."""

    subject: str
    text: str


def build_weekly_summary_mail(ctx: RequestContext) -> MailText | None:
    """Return the weekly summary of a learner; None without a plan."""
    plan = load_study_plan(ctx)
    if plan is None:
        return None
    week = summarize_last_seven_days(ctx, plan, load_study_record(ctx))
    done_text = (
        f"{format_count_with_noun(week.days_studied, 'day')} of study, "
        f"{format_count_with_noun(week.pages_read, 'page')}, "
        f"{format_count_with_noun(week.questions_answered, 'answer')}, "
        f"{format_count_with_noun(week.cards_newly_known, 'card')} remembered on a later day for the first time"
    )
    lines = [f"Your last seven days: {done_text}."]
    if plan.estimate:
        estimate = plan.estimate
        few = "; few answers yet" if estimate.answers < estimate.questions else ""
        lines.append(
            f"About {estimate.shown_score} of {estimate.questions} today, likely {estimate.low} to "
            f"{estimate.high}{few}."
        )
    lines.append(f"{len(plan.ready_objectives)} of {plan.objective_count} objectives are ready.")
    exam = ctx.learner.exam_day
    if exam is not None and exam >= ctx.study_day:
        days_left = format_count_with_noun((exam - ctx.study_day).days, "day")
        lines.append(f"{days_left} to your exam on {format_date_with_weekday(exam)}.")
    subject = f"Your week: {format_count_with_noun(week.days_studied, 'day')} of study"
    return MailText(subject.replace(NBSP, " "), "\n".join(lines).replace(NBSP, " "))


_CONFIRMATION_TEXT = """Somebody, probably you, asked for a weekly summary of their studies at this address.

To get it on Mondays, confirm here: {address}

If it wasn't you, do nothing: you'll get no other email."""


def send_due_confirmations_and_summaries(
    engine: Engine,
    course_by_name: dict[str, Course],
    server: MailServer,
    now: dt.datetime,
    send: Callable[[str, str, str, str], None],
) -> int:
    """Send what is due: confirmations at once, summaries on the first day of a week.

    Each is recorded before it is sent, so none is sent twice, and one that fails comes next week.
    Returns how many were sent.
    """
    with Session(engine) as db:
        subscriptions = store.list_mail_subscriptions(db)
    sent = 0
    for subscription in subscriptions:
        with Session(engine) as db:
            learner = load_learner_by_id(db, subscription.learner_id)
            if learner is None or learner.course_name not in course_by_name:
                continue
            day = learner.study_day(now)
            monday = day - dt.timedelta(days=day.weekday())
            if (
                subscription.last_mail_day >= monday.isoformat()
                if subscription.confirmed
                else subscription.last_mail_day
            ):
                continue
            course_path = f"/courses/{learner.course_name}" if learner.course_name else ""
            base_url = server.app_base_url.rstrip("/") + course_path
            mail_url = f"{base_url}/mail/{subscription.link_key}"
            if subscription.confirmed:
                request = Request({"type": "http"})  # only rendering a page needs more
                ctx = RequestContext(request, course_by_name[learner.course_name], learner, db, now)
                summary = build_weekly_summary_mail(ctx)
                if summary is None:
                    continue
                subject, text = summary
                text += f"\n\nToday's list: {base_url}/\n\nNo more of these emails: {mail_url}"
            else:
                subject = "Confirm your weekly summary"
                text = _CONFIRMATION_TEXT.format(address=mail_url)
        with Session(engine) as db:
            db.connection(execution_options=WRITE_OPTIONS)
            is_first = store.claim_mail_delivery(db, subscription, day)
            db.commit()
        if is_first:
            send(subscription.address, subject, text, mail_url)
            sent += 1
    return sent


@contextlib.asynccontextmanager
async def run_weekly_mail_sender(
    engine: Engine, courses: CourseRegistry, server: MailServer, clock: Callable[[], dt.datetime]
) -> AsyncIterator[None]:
    """Send mails while the server runs; nothing without a mail server and a public address."""
    if not (server.smtp_url and server.app_base_url):
        yield
        return
    mail_task = asyncio.create_task(_send_mails_in_loop(engine, courses, server, clock))
    try:
        yield
    finally:
        mail_task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await mail_task


async def _send_mails_in_loop(
    engine: Engine, courses: CourseRegistry, server: MailServer, clock: Callable[[], dt.datetime]
) -> None:
    while True:
        await asyncio.sleep(_CHECK_INTERVAL_SECONDS)
        course_by_name = {
            name: live.get_current_course() for name, live in courses.live_courses.items()
        }
        try:
            await asyncio.to_thread(
                send_due_confirmations_and_summaries,
                engine,
                course_by_name,
                server,
                clock(),
                server.send,
            )
        except (SQLAlchemyError, OSError, smtplib.SMTPException):
            _log.exception("a weekly summary could not be sent")


router = APIRouter()


@router.post("/settings/mail")
def save_mail_address(ctx: WriteContext, address: Annotated[str, Form()] = "") -> Response:
    """Save the address for the weekly summary; an empty one ends it."""
    if not ctx.request.app.state.settings.smtp:
        raise NotFoundError("This server sends no mail.")
    address = address.strip()
    name, at_sign, host = address.rpartition("@")
    is_valid = name and at_sign and "." in host and address.isprintable() and " " not in address
    if address and (not is_valid or len(address) > _MAX_ADDRESS_LENGTH):
        raise InvalidInputError("Enter an email address such as rosa@example.org.", "address")
    if address != ctx.learner.mail:
        key = secrets.token_urlsafe(24) if address else ""
        values = {"mail": address, "mail_key": key, "mail_confirmed": False, "mailed": ""}
        update_learner_columns(ctx.db, ctx.learner.id, values)
    return RedirectResponse("/settings?kept=yes#mail", 303)


@router.get("/mail/{key}")
def show_mail_subscription(
    request: Request, key: str, learner: CurrentLearner, db: DbSession
) -> HTMLResponse:
    """The page that a mail links to, where its address is confirmed or removed."""
    subscription = store.find_mail_subscription(db, key)
    return render_page(
        request, "progress/mail.html", learner=learner, subscription=subscription, key=key
    )


@router.post("/mail/{key}")
def confirm_or_remove_mail_address(
    key: str, db: DbSession, now: Now, wanted: Annotated[Literal["yes", "no"], Form()]
) -> Response:
    """Confirm or remove the address, from any browser."""
    subscription = store.find_mail_subscription(db, key)
    if subscription is None:
        raise NotFoundError("This address gets no emails anymore.")
    monday = (now - dt.timedelta(days=now.weekday())).date().isoformat()
    confirmed = {"mail_confirmed": True, "mailed": monday}
    removed = {"mail": "", "mail_key": "", "mail_confirmed": False, "mailed": ""}
    update_learner_columns(db, subscription.learner_id, confirmed if wanted == "yes" else removed)
    return RedirectResponse(f"/mail/{key}", 303)
