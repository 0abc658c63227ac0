"""All rows that belong to a learner, in whatever table, by their foreign keys."""

import base64
import functools
from array import array
from collections.abc import Iterator
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, Table, delete, func, select
from sqlmodel import Session, SQLModel, col

from app.db.erasure import note_erasure
from app.db.tables import (
    TABLES,
    CardStateRow,
    DeviceCode,
    Learner,
    LearnerSession,
    Review,
    Sitting,
)
from app.learners.store import rows_of

# Never shown: keys and digests are for the server alone. The content of pictures has
# files of its own.
_KEPT_BACK = {"key", "person", "digest", "content"}
_LEFT_OUT = {DeviceCode.__tablename__}
_PICTURE = TABLES["own_picture"]
_ROWS_AT_ONCE = 200
_ERASED_LAST = {Learner.__tablename__, LearnerSession.__tablename__}
_ROWS_OF_PART = 500
# How many rows take as long: a picture has up to 2 MB, a card or a paper some kB.
_WEIGHTS = {"own_picture": 100, "own_card": 5, "sitting": 5}


def exported_tables() -> tuple[Table, ...]:
    """Every table whose rows a learner may take along."""
    return tuple(table for table in owned_tables() if table.name not in _LEFT_OUT)


def columns_of(table: Table) -> tuple[str, ...]:
    """The names of the columns that a learner may take along."""
    return tuple(c.name for c in table.columns if c.name not in _KEPT_BACK)


def read_rows(db: Session, table: Table, learner_id: int) -> Iterator[RowMapping]:
    """The rows of a learner in a table, oldest first, a few at a time in memory."""
    columns = [table.c[name] for name in columns_of(table)]
    numbers = _numbers(db, table, learner_id)
    for begin in range(0, len(numbers), _ROWS_AT_ONCE):
        some = table.c.id.in_(numbers[begin : begin + _ROWS_AT_ONCE])
        wanted = select(*columns).where(some).order_by(table.c.id)
        yield from db.execute(wanted).mappings()


def read_pictures(db: Session, learner_id: int) -> Iterator[tuple[str, bytes]]:
    """The pictures of a learner, each once, with the names of their files."""
    seen = set()
    for number in _numbers(db, _PICTURE, learner_id):
        wanted = select(_PICTURE.c.name, _PICTURE.c.content)
        name, content = db.execute(wanted.where(_PICTURE.c.id == number)).one()
        if name not in seen:  # two courses may have the same
            yield name, base64.b64decode(content)
        seen.add(name)


def _numbers(db: Session, table: Table, learner_id: int) -> "array[int]":
    """The ids of a learner's rows, in order.

    Rows are looked up by them: to have the database sort whole rows would take as much
    room as they do.
    """
    wanted = select(table.c.id).where(_theirs(table, learner_id)).order_by(table.c.id)
    return array("q", db.scalars(wanted.execution_options(yield_per=1000)))


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
    if table.name == CardStateRow.__tablename__:
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
    """Delete a learner, in every course: all rows of theirs.

    What stays of them in the files is removed later (see `app.db.erasure`).
    """
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
