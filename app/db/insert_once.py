"""Rows that may be sent twice and must be written once."""

import functools
from collections.abc import Mapping
from typing import Any

from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session, SQLModel

from app.db.tables import TABLES

BROUGHT = "file:"
"""How the token of a row begins that came with a file; a form's is hexadecimal."""


def insert_if_absent(db: Session, table: type[SQLModel], values: Mapping[str, Any]) -> int | None:
    """Insert a row; returns its id, or None when a unique value is there already.

    A repeated request that arrives while the first is still being answered waits for
    it here and then finds its row.
    """
    statement = _statement(table, db.connection().dialect.name)
    row = db.connection().execute(statement, values).first()
    return int(row[0]) if row else None


@functools.cache
def _statement(table: type[SQLModel], dialect: str) -> Any:
    columns = TABLES[str(table.__tablename__)]
    insert = sqlite.insert if dialect == "sqlite" else postgresql.insert
    return insert(columns).on_conflict_do_nothing().returning(columns.c.id)
