"""The stage: learners who own a row in every table there is."""

import itertools
from collections.abc import Callable

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Boolean, Column, Float, Integer, Table
from sqlmodel import Session, SQLModel, select

from app.accounts.learner_store import list_tables_with_learner_rows
from app.database.tables import Learner

Rows = dict[str, int]
WITH_THE_FIRST_WRITE = {"learner", "learner_session"}
_words = itertools.count(1)


def value(column: Column, rows: Rows) -> object:
    """Something that fits: a row of the same learner, or any value of its type."""
    for key in column.foreign_keys:
        return rows.get(key.column.table.name)
    if isinstance(column.type, Boolean):
        return False
    if isinstance(column.type, Integer):
        return next(_words) * 1000
    if isinstance(column.type, Float):
        return 0.5
    return f"w{next(_words):07}"  # base64, as the content of a picture is


def insert(session: Session, table: Table, rows: Rows) -> None:
    values = {c.name: value(c, rows) for c in table.columns if c.name != "id"}
    made = session.execute(table.insert().values(**values))
    rows[table.name] = made.inserted_primary_key[0]


@pytest.fixture
def own_everything(session: Session) -> Callable[[TestClient, str], int]:
    """Give the learner of a browser a row in each table that can hold one."""

    def fill(client: TestClient, name: str) -> int:
        client.post("/settings", data={"name": name, "minutes_a_day": "30", "retention": "90"})
        session.rollback()
        learner = session.exec(select(Learner).where(Learner.name == name)).one()
        rows = {"learner": learner.id}
        for table in list_tables_with_learner_rows():
            if table.name not in WITH_THE_FIRST_WRITE:
                insert(session, table, rows)
        session.commit()
        return learner.id

    return fill


@pytest.fixture
def every_table() -> list[Table]:
    return list(SQLModel.metadata.sorted_tables)
