"""SQL: the progress of a learner's import of cards."""

import collections
import dataclasses
import datetime as dt
import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, delete, insert, select, update
from sqlmodel import Session

from app.clock import to_milliseconds
from app.database.tables import TABLES

IMPORTS = TABLES["card_import"]
RUNNING, DONE, CANCELLED = "running", "done", "cancelled"
STOPPED, FAILED, FULL = "stopped", "failed", "full"
# An import writes several times a second. One silent for this long (ms) ended with its server.
_ENDED_AFTER_SILENT_MILLISECONDS = 60_000


@dataclasses.dataclass(frozen=True, slots=True)
class ImportCounts:
    """How many cards are new, changed or unchanged; reviews imported, and skipped by reason.

    `staggered_card_count` counts cards without a review, a few of which start on each day.
    """

    new_card_count: int = 0
    changed_card_count: int = 0
    unchanged_card_count: int = 0
    imported_review_count: int = 0
    skipped_review_count_by_reason: Mapping[str, int] = dataclasses.field(default_factory=dict)
    staggered_card_count: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class NewImport:
    """A matched file: its name, how many cards to write, and what is skipped."""

    file_name: str
    card_count: int
    skipped_card_count_by_reason: Mapping[str, int]
    skipped_review_count_by_reason: Mapping[str, int]
    lost_media_count: int


@dataclasses.dataclass(frozen=True, slots=True)
class ImportProgress:
    """The progress of an import; `began_at_ms` tells it from a later one of the same learner."""

    file_name: str
    state: str
    card_count: int
    written_card_count: int
    counts: ImportCounts
    skipped_card_count_by_reason: Mapping[str, int]
    lost_media_count: int
    began_at_ms: int


def save_import_start_unless_running(
    db: Session, learner_id: int, new_import: NewImport, now: dt.datetime
) -> int | None:
    """Save the start of an import; returns its id, None if another is running."""
    last = read_last_import(db, learner_id, now)
    if last is not None and last.state == RUNNING:
        return None
    at = to_milliseconds(now)
    began_at = max(at, last.began_at_ms + 1) if last else at
    skipped_by_reason = {
        "cards": dict(new_import.skipped_card_count_by_reason),
        "grades": dict(new_import.skipped_review_count_by_reason),
    }
    db.connection().execute(delete(IMPORTS).where(IMPORTS.c.learner_id == learner_id))
    row = {
        **dict.fromkeys(("seen", "new", "changed", "same", "grades"), 0),
        "learner_id": learner_id,
        "file": new_import.file_name,
        "state": RUNNING,
        "cards": new_import.card_count,
        "media": new_import.lost_media_count,
        "refused": json.dumps(skipped_by_reason),
        "began_at": began_at,
        "at": at,
    }
    db.connection().execute(insert(IMPORTS), row)
    return began_at


def add_batch_counts_to_progress(
    db: Session,
    learner_id: int,
    began_at: int,
    written_card_count: int,
    batch_counts: ImportCounts,
    now: dt.datetime,
) -> None:
    import_filter = _build_import_condition(learner_id, began_at)
    row = db.connection().execute(select(IMPORTS).where(*import_filter)).one()
    refused = json.loads(row.refused)
    grades = collections.Counter(refused["grades"]) + collections.Counter(
        batch_counts.skipped_review_count_by_reason
    )

    db.connection().execute(
        update(IMPORTS)
        .where(*import_filter)
        .values(
            seen=IMPORTS.c.seen + written_card_count,
            new=IMPORTS.c.new + batch_counts.new_card_count,
            changed=IMPORTS.c.changed + batch_counts.changed_card_count,
            same=IMPORTS.c.same + batch_counts.unchanged_card_count,
            grades=IMPORTS.c.grades + batch_counts.imported_review_count,
            refused=json.dumps({**refused, "grades": grades}),
            at=to_milliseconds(now),
        )
    )


def is_import_running(db: Session, learner_id: int, began_at: int) -> bool:
    """Return whether this import was not canceled, replaced or erased."""
    state = select(IMPORTS.c.state).where(*_build_import_condition(learner_id, began_at))
    return db.connection().scalar(state) == RUNNING


def save_import_end_unless_ended(
    db: Session, learner_id: int, began_at: int, final_state: str
) -> None:
    """Save how an import ended, unless it was already ended."""
    running_filter = (*_build_import_condition(learner_id, began_at), IMPORTS.c.state == RUNNING)
    db.connection().execute(update(IMPORTS).where(*running_filter).values(state=final_state))


def cancel_import(db: Session, learner_id: int) -> None:
    """Stop a learner's import after the current batch."""
    running_filter = (IMPORTS.c.learner_id == learner_id) & (IMPORTS.c.state == RUNNING)
    db.connection().execute(update(IMPORTS).where(running_filter).values(state=CANCELLED))


def read_last_import(db: Session, learner_id: int, now: dt.datetime) -> ImportProgress | None:
    query = select(IMPORTS).where(IMPORTS.c.learner_id == learner_id)
    row: Any = db.connection().execute(query).first()
    if row is None:
        return None
    is_silent = to_milliseconds(now) - row.at > _ENDED_AFTER_SILENT_MILLISECONDS
    refused = json.loads(row.refused)
    return ImportProgress(
        file_name=row.file,
        state=STOPPED if is_silent and row.state == RUNNING else row.state,
        card_count=row.cards,
        written_card_count=row.seen,
        counts=ImportCounts(row.new, row.changed, row.same, row.grades, refused["grades"]),
        skipped_card_count_by_reason=refused["cards"],
        lost_media_count=row.media,
        began_at_ms=row.began_at,
    )


def _build_import_condition(learner_id: int, began_at: int) -> tuple[ColumnElement[bool], ...]:
    return IMPORTS.c.learner_id == learner_id, IMPORTS.c.began_at == began_at
