"""Match a package with the course, and import it in batches."""

import asyncio
import collections
import contextlib
import dataclasses
import datetime as dt
import hashlib
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

from fastapi.concurrency import run_in_threadpool
from sqlmodel import Session
from starlette.exceptions import HTTPException

from app.accounts.current_learner import LearnerProfile
from app.accounts.learner_store import increment_change_counter
from app.content.course import Course
from app.database.engine import OpenWriteSession
from app.errors import ConflictError
from app.import_export import card_import_job_store, card_import_store
from app.import_export.anki.card_templates import (
    convert_anki_formulas_to_tex,
    is_blank_html,
    replace_media_with_stored_pictures,
)
from app.import_export.anki.package_format import build_stored_picture_name_or_empty
from app.import_export.anki.package_reader import (
    MANUAL_REVLOG_KIND,
    AnkiPackage,
    PackageCard,
    RevlogEntry,
)
from app.import_export.anki.package_writer import make_note_guid
from app.import_export.card_import_job_store import ImportCounts
from app.import_export.card_import_store import ImportedCard, ImportedLogEntry, NoteAndTopic
from app.import_export.export_store import OwnCardText
from app.import_export.html_sanitizer import sanitize_html
from app.import_export.html_to_markdown import MAX_NESTING, is_nested_too_deeply
from app.import_export.items import ItemSkippedError
from app.spaced_repetition.added_card_ids_and_faces import (
    LONGEST_FACE,
    OWN,
    PICTURES,
    build_question_card_id,
    build_term_card_id,
    find_topic_of_added_card,
    is_added_card_id,
    is_usable_as_card,
    parse_card_id,
)
from app.web.request_limits import FairSlots

_OWN_CARD_GUID = re.compile(r"own:[0-9a-f]{1,64}\Z")
_OWN_DECK = re.compile(r"Headroom::.*?::own(?:::(?P<deck>.*))?\Z")
_FILTERED_REVLOG_KIND = 3
_NOT_SCHEDULED = "practice outside of the schedule"
_BY_HAND = "set or moved by hand, so no grade"
_NO_WORDS_REASON = "no words on one side without pictures and sounds"
_IMAGE_OCCLUSION_REASON = "image occlusion, which only Anki can draw over its picture"
_IMAGE_OCCLUSION_MARKUP = re.compile(r"\{\{c\d+::image-occlusion:")
_DUPLICATE_REASON = "in the file twice"
_TOO_LONG = f"longer than {LONGEST_FACE:,} characters on one side"
_TOO_DEEP = f"tags within more than {MAX_NESTING} others on one side"
_NO_SIDE = "a side that the course does not have"
_MOST_GRADES = 500  # of one card, which is written in one batch
_TOO_MANY = f"older than the last {_MOST_GRADES:,} of their card"
_MOST_TAGS = 1500  # of one face; nested tags make sanitizing slow
_RATING_EASES = range(1, 5)
_RATED_REVLOG_KINDS = range(3)  # learning, review, relearning


@dataclasses.dataclass(frozen=True, slots=True)
class MatchedPackage:
    """The cards of a package, and how many of what is skipped, by reason."""

    cards_to_import: tuple[ImportedCard, ...]
    skipped_card_count_by_reason: Mapping[str, int]
    skipped_log_row_count_by_reason: Mapping[str, int]
    lost_media_count: int


def match_package_with_course(package: AnkiPackage, course: Course) -> MatchedPackage:
    """Match every card with the course; all others become the learner's own cards."""
    course_cards = _map_note_guids_to_course_cards(course)
    skipped_cards: collections.Counter[str] = collections.Counter()
    skipped_log_rows: collections.Counter[str] = collections.Counter()
    lost_media_count = 0
    stored_names = {
        file: name
        for file, content in package.picture_by_name.items()
        if (name := build_stored_picture_name_or_empty(content))
    }
    cards: dict[str, ImportedCard] = {}
    if package.stray_log_row_count:
        reason = "about cards that the file does not hold"
        skipped_log_rows[reason] = package.stray_log_row_count
    for card in sorted(package.cards, key=lambda c: c.new_card_position):
        card_id = _derive_card_id_or_empty(card, course_cards)
        content = _OwnCardContent()
        reason = _NO_SIDE if not card_id else _DUPLICATE_REASON if card_id in cards else ""
        try:
            if not reason and parse_card_id(card_id).source_kind == OWN:
                content = _convert_to_own_card_content(card, stored_names)
        except ItemSkippedError as error:
            reason = str(error)
        if reason:
            skipped_cards[reason] += 1
            continue
        lost_media_count += content.lost_media_count
        note, topic = find_note_and_topic(course, card_id)
        cards[card_id] = ImportedCard(
            card_id=card_id,
            note_name=note,
            topic_slug=topic,
            origin_key=f"{card.note.guid}\0{card.card_ordinal}",
            log_entries=tuple(_convert_revlog_counting_skipped(card, skipped_log_rows)),
            own_text=content.card_text,
            picture_by_name={
                stored_names[file]: package.picture_by_name[file] for file in content.picture_names
            },
            is_suspended=card.is_suspended,
            desired_retention=card.desired_retention,
            seed=card.added_info.seed,
            due_since_ms=card.added_info.due_since_ms if is_added_card_id(card_id) else None,
        )
    return MatchedPackage(tuple(cards.values()), skipped_cards, skipped_log_rows, lost_media_count)


def _map_note_guids_to_course_cards(course: Course) -> dict[str, tuple[str, ...]]:
    """Return the cards of a note, by ordinal, for each GUID that our export writes."""
    notes: list[tuple[str, ...]] = [
        (card.id, card.sibling) if card.sibling else (card.id,)
        for card in course.cards.values()
        if card.id <= (card.sibling or card.id)
    ]
    questions = filter(is_usable_as_card, course.questions.values())
    notes += [(build_question_card_id(question.id),) for question in questions]
    notes += [(build_term_card_id(anchor),) for anchor in course.glossary]
    return {make_note_guid(cards[0]): cards for cards in notes}


def _derive_card_id_or_empty(
    card: PackageCard, course_cards_by_guid: Mapping[str, tuple[str, ...]]
) -> str:
    """Return our id of a card; empty if our note has no such card."""
    note_cards = course_cards_by_guid.get(card.note.guid)
    if note_cards is not None:
        return note_cards[card.card_ordinal] if 0 <= card.card_ordinal < len(note_cards) else ""
    if _OWN_CARD_GUID.match(card.note.guid):
        return card.note.guid if card.card_ordinal == 0 else ""
    identity = f"anki {card.note.guid}\0{card.card_ordinal}"
    return f"{OWN}:{hashlib.sha256(identity.encode()).hexdigest()[:32]}"


@dataclasses.dataclass(frozen=True, slots=True)
class _OwnCardContent:
    """The text of an own card, its picture files, and how many media are lost."""

    card_text: OwnCardText | None = None
    picture_names: frozenset[str] = frozenset()
    lost_media_count: int = 0


def _convert_to_own_card_content(
    card: PackageCard, stored_name_by_picture: Mapping[str, str]
) -> _OwnCardContent:
    """Return the content of an own card; raises ItemSkippedError."""
    _require_importable_text(card)
    addresses = {file: f"{PICTURES}{name}" for file, name in stored_name_by_picture.items()}
    lost_count, files = 0, frozenset[str]()
    faces: list[str] = []
    for face in card.render_sides():
        html, lost_media_count, kept_picture_names = replace_media_with_stored_pictures(
            convert_anki_formulas_to_tex(face), addresses
        )
        faces.append(sanitize_html(html))
        lost_count += lost_media_count
        files |= kept_picture_names
    if any(map(is_blank_html, faces)):
        raise ItemSkippedError(_NO_WORDS_REASON)
    if any(len(face) > LONGEST_FACE for face in faces):
        raise ItemSkippedError(_TOO_LONG)
    own_deck = _OWN_DECK.match(card.deck_name)
    deck = (own_deck["deck"] or "") if own_deck else card.deck_name
    guid = "" if _OWN_CARD_GUID.match(card.note.guid) else card.note.guid
    text = OwnCardText(deck, faces[0], faces[1], guid, card.card_ordinal, card.note.tags)
    return _OwnCardContent(text, files, lost_count)


def _require_importable_text(card: PackageCard) -> None:
    """Raise ItemSkippedError if the text of a card cannot be imported."""
    if any(_IMAGE_OCCLUSION_MARKUP.search(field) for field in card.note.field_values):
        raise ItemSkippedError(_IMAGE_OCCLUSION_REASON)
    if sum(map(len, card.note.field_values)) > 2 * LONGEST_FACE:
        raise ItemSkippedError(_TOO_LONG)
    for face in card.render_sides():
        if len(face) > LONGEST_FACE or face.count("<") > _MOST_TAGS:
            raise ItemSkippedError(_TOO_LONG)
        if is_nested_too_deeply(face):
            raise ItemSkippedError(_TOO_DEEP)


def _convert_revlog_counting_skipped(
    card: PackageCard, skipped_count_by_reason: collections.Counter[str]
) -> Iterator[ImportedLogEntry]:
    """Yield the reviews and manual edits of a card; other rows are counted in `skipped_count_by_reason`.

    A due date counts only if nothing came after it. A card that is new now was reset, whether its
    log says so or not. Anki has no log row for burying a card.
    """
    log = card.revlog[-_MOST_GRADES:]
    if len(card.revlog) > _MOST_GRADES:
        skipped_count_by_reason[_TOO_MANY] += len(card.revlog) - _MOST_GRADES
    last_entry = None
    for row in log:
        entry = _convert_revlog_entry(row, card, is_last=row is log[-1])
        if entry is None:
            skipped_count_by_reason[
                _NOT_SCHEDULED if row.revlog_kind == _FILTERED_REVLOG_KIND else _BY_HAND
            ] += 1
        else:
            last_entry = entry
            yield entry
    if last_entry is not None and last_entry.rating and card.is_new:
        last_entry = ImportedLogEntry(last_entry.at_ms + 1, 0, 0, "forget")
        yield last_entry
    if card.buried_at_ms is not None:
        yield ImportedLogEntry(
            max(card.buried_at_ms, last_entry.at_ms + 1 if last_entry else 0), 0, 0, "bury"
        )


def _convert_revlog_entry(
    row: RevlogEntry, card: PackageCard, *, is_last: bool
) -> ImportedLogEntry | None:
    rescheduled = (
        row.revlog_kind == _FILTERED_REVLOG_KIND and row.factor > 0
    )  # early, in a filtered deck
    if row.ease in _RATING_EASES and (row.revlog_kind in _RATED_REVLOG_KINDS or rescheduled):
        return ImportedLogEntry(row.at_ms, row.ease, row.duration_ms)
    if row.is_reset:
        return ImportedLogEntry(row.at_ms, 0, 0, "forget")
    if row.revlog_kind == MANUAL_REVLOG_KIND and row.factor and card.due_day and is_last:
        return ImportedLogEntry(row.at_ms, 0, 0, "due", card.due_day.isoformat())
    return None


def find_note_and_topic(course: Course, card_id: str) -> NoteAndTopic:
    """Return the note and the topic of a card; from its id alone if it left the course."""
    course_card = course.cards.get(card_id)
    if course_card is None:
        return NoteAndTopic(card_id, find_topic_of_added_card(course, card_id))
    return NoteAndTopic(min(card_id, course_card.sibling or card_id), course_card.topic)


MAX_FILES_AT_ONCE = 2
"""Files that one process imports or exports at a time; each is held in memory."""
_LONGEST_WAIT = 50.0  # seconds until status 503; proxies give up after 60
_SMALL_FILE_WAIT_SECONDS = 1.0  # seconds in which a small file is done
_log = logging.getLogger("headroom")
FileSlot = contextlib.AsyncExitStack


class BackgroundCardImports:
    """The imports of this process. Each batch is its own transaction."""

    def __init__(
        self,
        open_write_session: OpenWriteSession,
        clock: Callable[[], dt.datetime],
        max_wait_seconds: float = _LONGEST_WAIT,
    ) -> None:
        self._open_write_session = open_write_session
        self._clock = clock
        self._patience = max_wait_seconds
        self._slots = FairSlots(MAX_FILES_AT_ONCE, MAX_FILES_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()
        self._ending = False

    @contextlib.asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """On shutdown, wait until the current batches are committed."""
        yield
        self._ending = True
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @contextlib.asynccontextmanager
    async def reserve_file_slot(self, client: str = "") -> AsyncIterator[FileSlot]:
        """Reserve one of the file slots; HTTPException 503 if none becomes free.

        Clients without a slot come first. The caller that starts an import keeps the slot
        (`pop_all`).
        """
        async with contextlib.AsyncExitStack() as stack:
            slot = self._slots.hold_slot(client, max_wait_seconds=self._patience)
            try:
                await stack.enter_async_context(slot)
            except TimeoutError:
                message = "Other files are being imported. Send yours in a minute."
                raise HTTPException(503, message, {"retry-after": "60"}) from None
            yield stack

    async def start_and_wait_briefly(
        self,
        learner: LearnerProfile,
        import_began_at: int,
        cards: Sequence[ImportedCard],
        file_slot: FileSlot,
    ) -> asyncio.Task[None]:
        """Write cards in batches; returns when done, or after a short wait."""
        task = asyncio.create_task(self._run(learner, import_began_at, cards, file_slot))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await asyncio.wait({task}, timeout=_SMALL_FILE_WAIT_SECONDS)
        return task

    async def _run(
        self, learner: LearnerProfile, began_at: int, cards: Sequence[ImportedCard], slot: FileSlot
    ) -> None:
        async with slot:
            try:
                state = await self._write_all_batches(learner, began_at, cards)
                await self._end_import(learner.id, began_at, state)
            except Exception:  # noqa: BLE001 - nothing awaits the task: the page and the log report it
                _log.exception("an import of cards failed")
                with contextlib.suppress(Exception):
                    await self._end_import(learner.id, began_at, card_import_job_store.FAILED)

    async def _write_all_batches(
        self, learner: LearnerProfile, began_at: int, cards: Sequence[ImportedCard]
    ) -> str:
        """Write all batches; returns how it ended: done, canceled, stopped, or full."""
        waiting_count = 0
        for batch in card_import_store.batch_cards_by_write_cost(cards):
            if self._ending:
                return card_import_job_store.STOPPED
            now = self._clock()
            try:
                async with self._open_write_session() as db:
                    outcome = await run_in_threadpool(
                        _write_batch_unless_import_ended,
                        db,
                        learner,
                        began_at,
                        batch,
                        now,
                        waiting_count,
                    )
            except ConflictError:  # the learner has the maximum number of own cards
                return card_import_job_store.FULL
            if outcome is None:
                return card_import_job_store.CANCELLED
            waiting_count += outcome.staggered_card_count
        return card_import_job_store.DONE

    async def _end_import(self, learner_id: int, import_began_at: int, final_state: str) -> None:
        async with self._open_write_session() as db:
            increment_change_counter(db, learner_id)
            await run_in_threadpool(
                card_import_job_store.save_import_end_unless_ended,
                db,
                learner_id,
                import_began_at,
                final_state,
            )


def _write_batch_unless_import_ended(
    db: Session,
    learner: LearnerProfile,
    import_began_at: int,
    cards: Sequence[ImportedCard],
    now: dt.datetime,
    earlier_staggered_card_count: int,
) -> ImportCounts | None:
    """Write a batch and the progress; None if the import was ended."""
    # Every writer for a learner starts with this row, so others wait here for this transaction.
    exists = increment_change_counter(db, learner.id)
    if not exists or not card_import_job_store.is_import_running(db, learner.id, import_began_at):
        return None
    outcome = card_import_store.import_cards(db, learner, cards, now, earlier_staggered_card_count)
    card_import_job_store.add_batch_counts_to_progress(
        db, learner.id, import_began_at, len(cards), outcome, now
    )
    return outcome
