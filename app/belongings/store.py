"""All rows that belong to a learner, in whatever table, by their foreign keys."""

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import ColumnElement, Table, delete, func, select
from sqlmodel import Session, SQLModel, col

from app.db.scrubbing import note_erasure
from app.db.tables import (
    DeviceCode,
    Learner,
    LearnerSession,
    Memory,
    Review,
    Sitting,
)
from app.learners.store import rows_of

# Never shown: keys and digests are for the server alone.
_KEPT_BACK = {"key", "person", "digest"}
_LEFT_OUT = {DeviceCode.__tablename__}
_ERASED_LAST = {Learner.__tablename__, LearnerSession.__tablename__}
_ROWS_OF_PART = 500
# How many rows take as long: a picture has up to 2 MB, a card or a paper some kB.
_WEIGHTS = {"own_picture": 100, "own_card": 5, "sitting": 5}


@dataclasses.dataclass(frozen=True, slots=True)
class Belongings:
    """The rows of one table, oldest first, each by the names of its columns."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[Mapping[str, Any], ...]


def belongings(db: Session, learner_id: int) -> list[Belongings]:
    """Every table that holds something of a learner, with their rows."""
    return [
        _rows(db, table, learner_id)
        for table in owned_tables()
        if table.name not in _LEFT_OUT
    ]


def count(db: Session, learner_id: int) -> dict[str, int]:
    """How much each table holds of a learner, as a person would count it.

    A review that was undone is none, and its undoing, a row of the same log, is none
    either; a card that was only added or put aside has a row and was not begun.
    """
    return {
        table.name: db.scalar(
            select(func.count())
            .select_from(table)
            .where(_theirs(table, learner_id), *_counted(table))
        )
        or 0
        for table in owned_tables()
    }


def _counted(table: Table) -> tuple[ColumnElement[bool], ...]:
    if table.name == Review.__tablename__:
        undoing = table.alias()
        undone = select(undoing.c.id).where(undoing.c.voids == table.c.id).exists()
        return table.c.rating > 0, ~undone
    if table.name == Memory.__tablename__:
        return (table.c.state != "new",)
    return ()


def is_sitting(db: Session, learner_id: int) -> bool:
    """Whether an exam of this learner is still running."""
    open_ones = select(func.count()).where(
        col(Sitting.learner_id).in_(rows_of(learner_id)),
        col(Sitting.closed_at).is_(None),
    )
    return bool(db.scalar(open_ones))


def erase(db: Session, learner_id: int) -> None:
    """Delete a learner, in every course: all rows of theirs, and then every trace."""
    note_erasure(db)
    db.execute(delete(Learner).where(col(Learner.id).in_(rows_of(learner_id))))


def erase_part(db: Session, learner_id: int) -> bool:
    """Delete some rows of a learner; returns whether there may be more to delete.

    One statement for all of them would let everybody else wait for seconds. The learner
    and their browsers stay for `erase`, which also deletes what was added meanwhile.
    """
    note_erasure(db)
    left = _ROWS_OF_PART
    for table in reversed(owned_tables()):
        weight = _WEIGHTS.get(table.name, 1)
        if table.name in _ERASED_LAST:
            continue
        if left < weight:
            return True
        some = select(table.c.id).where(_theirs(table, learner_id))
        some = some.limit(left // weight)
        done: Any = db.execute(delete(table).where(table.c.id.in_(some)))
        left -= done.rowcount * weight
    return left < _ROWS_OF_PART


@functools.cache
def owned_tables() -> tuple[Table, ...]:
    """The learner and all that hangs on it, parents first."""
    tables = SQLModel.metadata.sorted_tables
    return tuple(table for table in tables if _way(table) is not None)


def _way(table: Table) -> tuple[str, Table] | None:
    """The column by which rows are a learner's, and the table it points into."""
    if table.name == Learner.__tablename__:
        return "id", table
    for owner, column in _parents(table):
        if owner.name == Learner.__tablename__:
            return column, owner
    for owner, column in _parents(table):
        if owner is not table and _way(owner) is not None:
            return column, owner
    return None


def _parents(table: Table) -> Iterator[tuple[Table, str]]:
    for key in sorted(table.foreign_keys, key=lambda k: k.parent.name):
        if key.ondelete == "CASCADE":
            yield key.column.table, key.parent.name


def _theirs(table: Table, learner_id: int) -> ColumnElement[bool]:
    """The condition that picks the rows of one learner, in every course."""
    way = _way(table)
    if way is None:
        raise LookupError(f"No row of {table.name} belongs to a learner.")
    column, owner = way
    if owner.name == Learner.__tablename__:
        return table.c[column].in_(rows_of(learner_id))
    return table.c[column].in_(select(owner.c.id).where(_theirs(owner, learner_id)))


def _rows(db: Session, table: Table, learner_id: int) -> Belongings:
    columns = [c for c in table.columns if c.name not in _KEPT_BACK]
    wanted = select(*columns).where(_theirs(table, learner_id)).order_by(table.c.id)
    rows = db.execute(wanted).mappings()
    return Belongings(
        table.name, tuple(c.name for c in columns), tuple(dict(row) for row in rows)
    )
