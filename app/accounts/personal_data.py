"""Export and erasure of personal data.

The archive is written row by row, so that memory use does not grow with the rows.
"""

import csv
import datetime as dt
import io
import json
import shutil
import tempfile
import zipfile
from collections.abc import Collection, Iterable
from typing import IO, Annotated, Any

from fastapi import APIRouter, Form, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, Response
from sqlalchemy import RowMapping, Table
from sqlmodel import Session
from starlette.background import BackgroundTask

from app.accounts import learner_store
from app.accounts.current_learner import (
    ReadContext,
    RequestContext,
    load_learner_in_separate_db_session,
    redirect_with_cookie_clearing_site_data,
    run_in_read_session,
)
from app.accounts.downloads import DownloadQueue
from app.clock import Now, from_milliseconds
from app.database.backup import MONTHS
from app.database.engine import OpenWriteSession
from app.web.visitor import SessionCookies

# Text columns with JSON; the JSON files contain it as JSON.
_JSON_COLUMNS = {"raw", "parsed", "items", "paper", "struck", "refused"}
_README_TEXT = """Everything that Headroom keeps about you, of {day}.

Each table is here twice with the same rows: NAME.json as a list of objects,
one a line; NAME.csv for a spreadsheet (UTF-8 with a byte order mark, a line of column
names first). about.json counts the rows.

learner          your settings; one row for each course that you study
attempt          every answer to a question; score 0 to 1, certainty 1 to 3
regrade          answers that were graded again, after the key of their question
                 was mended; the newest of an attempt is the score that counts
review           every grade of a card: 1 again, 2 hard, 3 good, 4 easy. A row
                 with voids undoes the review of that id; one with an act
                 says what was set by hand
memory           what the reviews of each card amount to
suspension       cards put aside
added_card       missed questions and terms that you study as cards
own_card         cards of your own, and course cards that you edited
own_picture      pictures on them, each a file in the folder pictures
card_import      the last file of cards that you imported
study_day        what each day held, added up
day_list         what was on your list for each day, and the score estimate of that morning
prediction       what you were told about your score, day by day
question_flag    questions that you flagged
reading          sections of pages that you have read
calendar_feed    that a calendar program may read your plan
note             what you wrote beside sections, and your bookmarks
practice_run     sets of questions that you worked through
sitting          mock exams; paper is the list of questions drawn for it
sitting_answer   what you answered in them, by number
item_report      what you reported as wrong

Times are UTC; a study day begins at four in the morning in your time zone.
Questions, cards and topics are named as in the files of the course.
"""


_ARCHIVE_VERSION = 2
"""Version of the archive's structure. Since 2 it contains pictures as files."""


def write_personal_data_archive(
    db: Session, learner_id: int, now: dt.datetime, file: IO[bytes]
) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("README.txt", _README_TEXT.format(day=now.date().isoformat()))
        counts = {
            table.name: _write_table_to_archive(
                archive, table, learner_store.iterate_exported_rows_of_person(db, table, learner_id)
            )
            for table in learner_store.list_exported_tables()
        }
        # Pictures are stored uncompressed: deflating takes long and saves nothing.
        for name, content in learner_store.iterate_exported_pictures_of_person(db, learner_id):
            archive.writestr(f"pictures/{name}", content, zipfile.ZIP_STORED)
        about = {
            "app": "headroom",
            "format": _ARCHIVE_VERSION,
            "at": _format_timestamp(now),
            "rows": counts,
        }
        archive.writestr("about.json", json.dumps(about, indent=1) + "\n")


def _write_table_to_archive(
    archive: zipfile.ZipFile, table: Table, rows: Iterable[RowMapping]
) -> int:
    """Write the rows of a table as JSON and CSV; returns their number."""
    count, columns = 0, learner_store.list_exported_columns(table)
    time_columns = [n for n in columns if n in {"at", "first_seen"} or n.endswith("_at")]
    # A zip file is written one member at a time, so the CSV waits in a temporary file.
    with tempfile.TemporaryFile("w+", encoding="utf-8", newline="") as csv_file:
        csv_writer = csv.DictWriter(csv_file, columns)
        csv_writer.writeheader()
        with _open_archive_member_as_text(archive, f"{table.name}.json") as json_entry:
            for row in rows:
                values = _row_with_iso_times(row, time_columns)
                csv_writer.writerow(values)
                json_entry.write(",\n" if count else "[\n")
                parsed = {
                    n: _parse_json_or_keep_text(values[n]) for n in _JSON_COLUMNS if n in values
                }
                json_entry.write(json.dumps(values | parsed, ensure_ascii=False))
                count += 1
            json_entry.write("\n]\n" if count else "[]\n")
        csv_file.seek(0)
        with _open_archive_member_as_text(archive, f"{table.name}.csv") as csv_entry:
            csv_entry.write("\ufeff")  # Excel needs it to detect UTF-8
            shutil.copyfileobj(csv_file, csv_entry)
    return count


def _open_archive_member_as_text(archive: zipfile.ZipFile, name: str) -> io.TextIOWrapper:
    raw = archive.open(name, "w", force_zip64=True)  # its size is not known yet
    return io.TextIOWrapper(raw, encoding="utf-8", newline="")


def _row_with_iso_times(row: RowMapping, time_columns: Collection[str]) -> dict[str, Any]:
    values = dict(row)
    for name in time_columns:
        if values[name] is not None:
            values[name] = _format_timestamp(from_milliseconds(values[name]))
    return values


def _parse_json_or_keep_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _format_timestamp(at: dt.datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


router = APIRouter(prefix="/settings", include_in_schema=False)
CONFIRMATION_WORD = "erase"


@router.get("/export")
async def export_archive(request: Request, now: Now) -> Response:
    learner = await load_learner_in_separate_db_session(request)
    downloads: DownloadQueue = request.app.state.downloads

    def write(db: Session, file: IO[bytes]) -> None:
        write_personal_data_archive(db, learner.row_id_in_any_course, now, file)

    name = f"headroom-{learner.study_day(now).isoformat()}.zip"
    return await downloads.create_download(request, learner.person, name, write)


@router.get("/erasure")
def show_erase_form(ctx: ReadContext) -> HTMLResponse:
    return _render_erase_form(ctx)


@router.post("/erasure")
async def erase_my_data(
    request: Request, word: Annotated[str, Form(max_length=100)] = ""
) -> Response:
    """Erase all data in parts, so that other requests can write in between."""
    if word.strip().casefold() != CONFIRMATION_WORD:
        return await run_in_read_session(request, lambda ctx: _render_erase_form(ctx, word))
    learner_id = await run_in_read_session(request, lambda ctx: ctx.learner.row_id_in_any_course)
    write_session: OpenWriteSession = request.app.state.open_write_session
    rows_remain = bool(learner_id)
    while rows_remain:
        async with write_session() as db:
            rows_remain = await run_in_threadpool(
                learner_store.erase_row_batch_and_check_for_more, db, learner_id
            )
    async with write_session() as db:
        await run_in_threadpool(learner_store.erase_person_in_all_courses, db, learner_id)
    cookies: SessionCookies = request.app.state.session_cookies
    deletion = cookies.format_session_cookie_deletion(request.state.visitor)
    response = redirect_with_cookie_clearing_site_data("/settings/erased", deletion)
    # Runs after the commit, without delaying the response.
    response.background = BackgroundTask(request.app.state.log_truncation.request_truncation)
    return response


@router.get("/erased")
def show_erased_page(ctx: ReadContext) -> HTMLResponse:
    return ctx.render_page("accounts/erased.html", backup_months=MONTHS)


def _render_erase_form(ctx: RequestContext, wrong_word: str | None = None) -> HTMLResponse:
    """Return the form; 422 if it was sent with a word other than the one that confirms."""
    message = f"Type “{CONFIRMATION_WORD}” to go on; “{(wrong_word or '').strip()}” erases nothing."
    is_refused = wrong_word is not None
    return ctx.render_page(
        "accounts/erasure.html",
        status=422 if is_refused else 200,
        counts=learner_store.count_records_of_person_by_table(
            ctx.db, ctx.learner.row_id_in_any_course
        ),
        sitting=learner_store.has_unclosed_sitting_in_any_course(
            ctx.db, ctx.learner.row_id_in_any_course
        ),
        word=CONFIRMATION_WORD,
        backup_months=MONTHS,
        entered_word=wrong_word or "",
        problems=[{"field": "word", "message": message}] if is_refused else [],
    )
