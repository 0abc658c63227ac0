"""Rows that may be sent twice and must be written once."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session, SQLModel


def insert_once(
    db: Session, table: type[SQLModel], values: Mapping[str, Any]
) -> int | None:
    """Insert a row; returns its id, or None when a unique value is there already.

    A repeated request that arrives while the first is still being answered waits for
    it here and then finds its row.
    """
    on_sqlite = db.get_bind().dialect.name == "sqlite"
    insert = sqlite.insert if on_sqlite else postgresql.insert
    columns = table.__table__  # type: ignore[attr-defined] # every table has one
    statement = (
        insert(columns)
        .values(**values)
        .on_conflict_do_nothing()
        .returning(columns.c.id)
    )
    row = db.execute(statement).first()
    return int(row[0]) if row else None
