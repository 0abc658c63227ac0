"""Pages that take cards of Anki in, and give them out as packages."""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import IO, Annotated, Literal

from fastapi import APIRouter, Depends, File, Form, Query, Request, UploadFile
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from sqlmodel import Session

from app.accounts.current_learner import (
    CurrentLearner,
    EnrolledLearner,
    LearnerProfile,
    ReadContext,
    RequestContext,
    count_bytes_toward_quota,
    load_learner_in_separate_db_session,
    open_write_context,
    refuse_cards_when_storage_or_quota_full,
    run_in_read_session,
)
from app.accounts.downloads import DownloadQueue
from app.accounts.learner_store import list_question_ids_in_running_exam
from app.clock import Now, time_zone_or_utc
from app.content.course import Course
from app.content.live_courses import LiveCourse
from app.database.engine import DbSession
from app.errors import ConflictError, NotFoundError
from app.import_export import (
    UnusableFileError,
    card_import_job_store,
    card_import_store,
    export_store,
)
from app.import_export.anki.package_format import PackageArchiveWriter, import_zstd_or_none
from app.import_export.anki.package_reader import read_package
from app.import_export.anki_card_export import (
    ExportedCourse,
    can_card_still_be_shown,
    write_learner_cards_to_anki_package,
)
from app.import_export.anki_package_import import (
    BackgroundCardImports,
    MatchedPackage,
    find_note_and_topic,
    match_package_with_course,
)
from app.import_export.card_import_store import ImportedCard
from app.spaced_repetition.added_card_ids_and_faces import build_question_card_id
from app.spaced_repetition.review_log import delete_empty_day_totals
from app.web.dependencies import CurrentCourse
from app.web.render import render_page
from app.web.request_limits import client_address_or_network_of_scope

router = APIRouter(prefix="/settings", include_in_schema=False)
_MEGABYTE = 1_000_000
_LARGEST_FILE = 20 * _MEGABYTE
REQUEST_LIMITS: Mapping[str, int] = {"/settings/cards": _LARGEST_FILE + _MEGABYTE}
"""Maximum request size in bytes of the URLs that accept a file, in a form."""
_FILE_SIZE_LIMIT_TEXT = f"at most {_LARGEST_FILE // _MEGABYTE} MB"
_WANTED_FILE = f"An .apkg or .colpkg file of Anki with {_FILE_SIZE_LIMIT_TEXT} is needed."
RemovalTarget = Literal["deck", "grades"]


@router.get("/cards.apkg")
async def export_cards(
    request: Request, course: CurrentCourse, now: Now, newest: Annotated[bool, Query()] = False
) -> Response:
    """Export every card that the learner has started or added, with all reviews.

    Cards of questions in a mock exam in progress are left out until it is over. `newest` compresses
    the package as newer versions of Anki do.
    """
    return await _create_package_download(course, request, now, newer_format=newest)


@router.get("/cards.colpkg")
async def export_cards_as_colpkg(request: Request, course: CurrentCourse, now: Now) -> Response:
    """Export the same as a whole collection, which replaces the one in Anki."""
    return await _create_package_download(course, request, now, newer_format=True)


async def _create_package_download(
    course: Course, request: Request, now: dt.datetime, *, newer_format: bool
) -> Response:
    if newer_format and import_zstd_or_none() is None:
        raise NotFoundError(
            "This server cannot write the newest format of Anki.",
            "Take the package for all versions at Cards and Anki.",
        )
    learner = await load_learner_in_separate_db_session(request)
    live: LiveCourse = request.state.live
    exported = ExportedCourse(course, live.folder)

    def write(db: Session, file: IO[bytes]) -> None:
        cards = export_store.LearnerCards(
            db, learner.id, _list_card_ids_in_running_exam(db, learner, now)
        )
        package = PackageArchiveWriter(file, newer_format=newer_format)
        local_now = now.astimezone(time_zone_or_utc(learner.zone))
        write_learner_cards_to_anki_package(exported, cards, package, local_now)

    ending = request.scope["path"].rpartition(".")[2]
    name = f"headroom-{learner.study_day(now)}.{ending}"
    downloads: DownloadQueue = request.app.state.downloads
    return await downloads.create_download(request, learner.person, name, write)


@router.get("/cards")
def show_cards(ctx: ReadContext) -> HTMLResponse:
    return _render_anki_cards_page(ctx)


@router.post("/cards", dependencies=[Depends(refuse_cards_when_storage_or_quota_full)])
async def import_cards_file(
    request: Request,
    course: CurrentCourse,
    now: Now,
    file: Annotated[UploadFile | None, File()] = None,
) -> Response:
    """Read a package and start to import it; redirects to the progress page.

    It is read before the database session is opened, so that writers do not wait.
    """
    imports: BackgroundCardImports = request.app.state.imports
    async with imports.reserve_file_slot(
        client_address_or_network_of_scope(request.scope)
    ) as import_slot:
        name = " ".join(((file and file.filename) or "").split())[:80]
        try:
            package = await run_in_threadpool(_read_and_match_upload, course, file, name)
            sizes = await run_in_read_session(
                request,
                lambda ctx: card_import_store.load_picture_sizes_in_all_courses(
                    ctx.db, ctx.learner.row_id_in_any_course
                ),
            )
            async with open_write_context(request) as ctx:
                cards, began_at = await run_in_threadpool(
                    _drop_over_quota_and_save_import_start,
                    ctx.db,
                    ctx.learner,
                    sizes,
                    package,
                    name,
                    now,
                )
        except UnusableFileError as error:
            message = str(error)
            return await run_in_read_session(
                request, lambda ctx: _render_anki_cards_page(ctx, message)
            )
        count_bytes_toward_quota(request, card_import_store.estimate_stored_bytes(cards))
        await imports.start_and_wait_briefly(ctx.learner, began_at, cards, import_slot.pop_all())
    return RedirectResponse("/settings/cards/import", 303)


def _read_and_match_upload(
    course: Course, file: UploadFile | None, file_name: str
) -> MatchedPackage:
    """Return the content of an uploaded package; raises UnusableFileError."""
    if file is None or not file_name:
        raise UnusableFileError(f"Choose a file first. {_WANTED_FILE}")
    if (file.size or 0) > _LARGEST_FILE:
        raise UnusableFileError(f"“{file_name}” is too large. {_WANTED_FILE}")
    content: IO[bytes] = file.file
    try:
        return match_package_with_course(read_package(content), course)
    except UnusableFileError as error:
        raise UnusableFileError(f"“{file_name}” cannot be used. {error} {_WANTED_FILE}") from None


def _drop_over_quota_and_save_import_start(
    db: Session,
    learner: LearnerProfile,
    picture_sizes: card_import_store.SizeByPicture,
    package: MatchedPackage,
    file_name: str,
    now: dt.datetime,
) -> tuple[Sequence[ImportedCard], int]:
    """Save the start of an import; return the cards that the quotas allow, and the start [ms]."""
    cards = card_import_store.drop_cards_beyond_picture_quota(
        db, learner.id, package.cards_to_import, picture_sizes
    )
    try:
        card_import_store.raise_if_too_many_own_cards(db, learner.id, cards)
    except UnusableFileError as error:
        raise UnusableFileError(f"The file was not imported: {error}") from None
    skipped_cards = dict(package.skipped_card_count_by_reason)
    if len(cards) < len(package.cards_to_import):
        skipped_cards[card_import_store.TOO_MANY_PICTURES_REASON] = len(
            package.cards_to_import
        ) - len(cards)
    new_import = card_import_job_store.NewImport(
        file_name,
        len(cards),
        skipped_cards,
        package.skipped_log_row_count_by_reason,
        package.lost_media_count,
    )
    began_at = card_import_job_store.save_import_start_unless_running(
        db, learner.id, new_import, now
    )
    if began_at is None:
        raise ConflictError(
            "Your last file is still being imported.",
            "Wait until it is done, or cancel it at Settings, Cards and Anki.",
        )
    return cards, began_at


@router.get("/cards/import")
def show_last_import(ctx: ReadContext) -> Response:
    progress = card_import_job_store.read_last_import(ctx.db, ctx.learner.id, ctx.now)
    if progress is None:
        return RedirectResponse("/settings/cards", 303)
    return ctx.render_page("import_export/import.html", import_progress=progress)


@router.get("/cards/import/progress")
def show_last_import_fragment(ctx: ReadContext) -> Response:
    """The same as a fragment, for a page that polls it."""
    progress = card_import_job_store.read_last_import(ctx.db, ctx.learner.id, ctx.now)
    if progress is None:
        raise NotFoundError("No file was imported.", "Import one at Cards and Anki.")
    return render_page(ctx.request, "import_export/_import.html", import_progress=progress)


@router.post("/cards/import/cancellation")
def cancel_import(learner: EnrolledLearner, db: DbSession) -> Response:
    """Stop the import after the current batch."""
    card_import_job_store.cancel_import(db, learner.id)
    return RedirectResponse("/settings/cards/import", 303)


@router.get("/cards/removal")
def show_removal_form(
    request: Request,
    learner: CurrentLearner,
    db: DbSession,
    removal_target: Annotated[RemovalTarget, Query(alias="what")],
    deck: Annotated[str, Query(max_length=120)] = "",
) -> HTMLResponse:
    imported = card_import_store.summarize_own_decks_and_imported_reviews(db, learner.id)
    own_deck = next((d for d in imported.own_decks if d.name == deck), None)
    if removal_target == "deck" and own_deck is None:
        raise NotFoundError(f"There is no deck “{deck}” among your own cards.")
    return render_page(
        request,
        "import_export/removal.html",
        learner=learner,
        removal_target=removal_target,
        deck=own_deck,
        course_card_reviews=imported.imported_course_review_count,
    )


@router.post("/cards/removal")
async def remove_own_deck_or_imported_reviews(
    request: Request,
    course: CurrentCourse,
    removal_target: Annotated[RemovalTarget, Form(alias="what")],
    deck: Annotated[str, Form(max_length=120)] = "",
) -> Response:
    """Remove a deck of own cards, or the imported reviews of course cards (“grades”).

    Batch by batch, so that others can write in between. What is left of an interrupted removal is
    deleted by the next one.
    """
    batches = await run_in_read_session(
        request, lambda ctx: _batch_cards_touched_by_removal(ctx, removal_target, deck)
    )
    for cards in batches:
        async with open_write_context(request) as ctx:
            await run_in_threadpool(
                _remove_own_cards_or_imported_reviews,
                ctx.db,
                ctx.learner.id,
                course,
                removal_target,
                cards,
            )
    async with open_write_context(request) as ctx:
        await run_in_threadpool(delete_empty_day_totals, ctx.db, ctx.learner.id)
        await run_in_threadpool(card_import_store.delete_unused_pictures, ctx.db, ctx.learner.id)
    return RedirectResponse("/settings/cards?removed=yes", 303)


def _batch_cards_touched_by_removal(
    ctx: RequestContext, removal_target: RemovalTarget, deck: str
) -> Sequence[Sequence[str]]:
    if removal_target == "deck":
        return card_import_store.batch_cards_of_own_deck(ctx.db, ctx.learner.id, deck)
    return card_import_store.batch_course_cards_with_imported_reviews(ctx.db, ctx.learner.id)


def _remove_own_cards_or_imported_reviews(
    db: Session,
    learner_id: int,
    course: Course,
    removal_target: RemovalTarget,
    card_ids: Sequence[str],
) -> None:
    if removal_target == "deck":
        card_import_store.delete_own_cards(db, learner_id, card_ids)
    else:
        card_import_store.delete_imported_reviews_of_course_cards(
            db, learner_id, card_ids, lambda card: find_note_and_topic(course, card)
        )


def _render_anki_cards_page(ctx: RequestContext, problem: str = "") -> HTMLResponse:
    db, course, learner = ctx.db, ctx.course, ctx.learner
    own_cards = export_store.list_own_card_ids(db, learner.id) if learner.id else frozenset[str]()
    all_cards = card_import_store.list_undeclined_card_ids_with_state(db, learner.id)
    in_exam = _list_card_ids_in_running_exam(db, learner, ctx.now)
    cards = [card for card in all_cards if card not in in_exam]
    available_count = sum(can_card_still_be_shown(course, own_cards, card) for card in cards)
    return ctx.render_page(
        "import_export/cards.html",
        status=422 if problem else 200,
        available_count=available_count,
        orphaned_count=len(cards) - available_count,
        in_exam_count=len(all_cards) - len(cards),
        imported=card_import_store.summarize_own_decks_and_imported_reviews(db, learner.id),
        problems=[{"field": "file", "message": problem}] if problem else [],
        modern=import_zstd_or_none() is not None,
        size=_FILE_SIZE_LIMIT_TEXT,
        removed=ctx.request.query_params.get("removed") == "yes" and not problem,
    )


def _list_card_ids_in_running_exam(
    db: Session, learner: LearnerProfile, now: dt.datetime
) -> set[str]:
    return {
        build_question_card_id(item)
        for item in list_question_ids_in_running_exam(db, learner.id, now)
    }
