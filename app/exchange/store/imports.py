"""How far the import of a file has come: one row for each learner, on disk."""

import collections
import dataclasses
import datetime as dt
import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import delete, insert, select, update
from sqlmodel import Session

from app.db.tables import TABLES
from app.exchange.store.arrivals import ImportCounts
from app.web.clock import to_milliseconds

IMPORTS = TABLES["card_import"]
RUNNING, DONE, CANCELLED, STOPPED, FAILED, FULL = (
    "running",
    "done",
    "cancelled",
    "stopped",
    "failed",
    "full",
)
# An import writes several times in a second. One that was silent for so long [ms] went
# down with its server.
_SILENT = 60_000


@dataclasses.dataclass(frozen=True, slots=True)
class ImportBatch:
    """A file sorted out: its name, how many cards to write, and what is left out."""

    file: str
    cards: int
    cards_left: Mapping[str, int]
    grades_left: Mapping[str, int]
    media: int


@dataclasses.dataclass(frozen=True, slots=True)
class ImportProgress:
    """An import as it stands: of `cards` in the file, `seen` were written.

    `began_at` tells it from a later one of the same learner.
    """

    file: str
    state: str
    cards: int
    seen: int
    outcome: ImportCounts
    cards_left: Mapping[str, int]
    media: int
    began_at: int

    @property
    def grades_left(self) -> Mapping[str, int]:
        """How many grades were left out so far, by the reason."""
        return self.outcome.left


def begin_import(db: Session, learner_id: int, batch: ImportBatch, now: dt.datetime) -> int | None:
    """Write down that an import begins; its name, None where another is running."""
    known = read_import(db, learner_id, now)
    if known is not None and known.state == RUNNING:
        return None
    at = to_milliseconds(now)
    began = max(at, known.began_at + 1) if known else at
    left = {"cards": dict(batch.cards_left), "grades": dict(batch.grades_left)}
    db.connection().execute(delete(IMPORTS).where(IMPORTS.c.learner_id == learner_id))
    row = {
        **dict.fromkeys(("seen", "new", "changed", "same", "grades"), 0),
        "learner_id": learner_id,
        "file": batch.file,
        "state": RUNNING,
        "cards": batch.cards,
        "media": batch.media,
        "refused": json.dumps(left),
        "began_at": began,
        "at": at,
    }
    db.connection().execute(insert(IMPORTS), row)
    return began


def advance_import(
    db: Session, running: tuple[int, int], more: tuple[int, ImportCounts], now: dt.datetime
) -> None:
    """Add what a slice of so many cards brought to the import `running`."""
    seen, outcome = more
    row = db.connection().execute(select(IMPORTS).where(*_that(running))).one()
    refused = json.loads(row.refused)
    grades = collections.Counter(refused["grades"]) + collections.Counter(outcome.left)
    names = ("new", "changed", "same", "grades")
    counts = {name: IMPORTS.c[name] + getattr(outcome, name) for name in names}
    db.connection().execute(
        update(IMPORTS)
        .where(*_that(running))
        .values(
            seen=IMPORTS.c.seen + seen,
            refused=json.dumps({**refused, "grades": grades}),
            at=to_milliseconds(now),
            **counts,
        )
    )


def is_running(db: Session, running: tuple[int, int]) -> bool:
    """Whether nobody has canceled this import, replaced or erased it."""
    state = select(IMPORTS.c.state).where(*_that(running))
    return db.connection().scalar(state) == RUNNING


def end_import(db: Session, running: tuple[int, int], state: str) -> None:
    """Write down how an import has ended, unless it was ended before."""
    still = (*_that(running), IMPORTS.c.state == RUNNING)
    db.connection().execute(update(IMPORTS).where(*still).values(state=state))


def cancel_import(db: Session, learner_id: int) -> None:
    """Stop the import of a learner after the slice that is being written."""
    mine = (IMPORTS.c.learner_id == learner_id) & (IMPORTS.c.state == RUNNING)
    db.connection().execute(update(IMPORTS).where(mine).values(state=CANCELLED))


def read_import(db: Session, learner_id: int, now: dt.datetime) -> ImportProgress | None:
    """The last import of a learner; None where there was none."""
    mine = select(IMPORTS).where(IMPORTS.c.learner_id == learner_id)
    row: Any = db.connection().execute(mine).first()
    if row is None:
        return None
    silent = to_milliseconds(now) - row.at > _SILENT
    refused = json.loads(row.refused)
    return ImportProgress(
        file=row.file,
        state=STOPPED if silent and row.state == RUNNING else row.state,
        cards=row.cards,
        seen=row.seen,
        outcome=ImportCounts(row.new, row.changed, row.same, row.grades, refused["grades"]),
        cards_left=refused["cards"],
        media=row.media,
        began_at=row.began_at,
    )


def _that(running: tuple[int, int]) -> tuple[Any, ...]:
    learner_id, began = running
    return IMPORTS.c.learner_id == learner_id, IMPORTS.c.began_at == began
