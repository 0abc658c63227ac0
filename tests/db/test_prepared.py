"""Prepared statements: what SQLAlchemy would answer, by a shorter way."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Engine,
    Integer,
    MetaData,
    String,
    Table,
    bindparam,
    event,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session

from app.db.engine import make_engine
from app.db.prepared import Prepared
from tests.databases import ABOUT_SQLITE

pytestmark = ABOUT_SQLITE
METADATA = MetaData()
CARDS = Table(
    "cards",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", String(20), unique=True),
    Column("aside", Boolean, nullable=False, server_default="0"),
    Column("tags", JSON),
    Column("turns", Integer, default=7),
)
ADD = Prepared(insert(CARDS).returning(CARDS.c.id))
NAMED = Prepared(select(CARDS).where(CARDS.c.name == bindparam("wanted")))
ASIDE = Prepared(
    select(CARDS.c.name, (CARDS.c.turns > 2).label("often"), func.count())
    .where(CARDS.c.aside == bindparam("aside"), CARDS.c.turns < 100)
    .group_by(CARDS.c.name)
    .order_by(CARDS.c.name)
)
AMONG = Prepared(
    select(CARDS.c.name).where(CARDS.c.name.in_(bindparam("names", expanding=True)))
)
TURN = Prepared(
    update(CARDS)
    .where(CARDS.c.name == bindparam("wanted"))
    .values(turns=CARDS.c.turns + bindparam("more"))
)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Session]:
    engine = make_engine(f"sqlite:///{tmp_path / 'cards.db'}")
    METADATA.create_all(engine)
    with Session(engine) as session:
        yield session
    engine.dispose()


@pytest.fixture
def asked(db: Session) -> Iterator[list[str]]:
    """What SQLAlchemy is heard to ask."""
    statements: list[str] = []

    def note(_connection, _cursor, statement, *_rest) -> None:
        statements.append(statement)

    engine = db.get_bind().engine
    assert isinstance(engine, Engine)
    event.listen(engine, "before_cursor_execute", note)
    yield statements
    event.remove(engine, "before_cursor_execute", note)


def put(db: Session, name: str, **values) -> int:
    row = {"name": name, "aside": False, "tags": None, "turns": 0, **values}
    return ADD.first(db, row).id


def same(statement: Prepared, db: Session, values) -> list[tuple]:
    """The rows, which are those of SQLAlchemy in value and type."""
    rows = [tuple(row) for row in statement.all(db, values)]
    theirs = [
        tuple(row) for row in db.connection().execute(statement.statement, values)
    ]
    assert rows == theirs
    assert [[type(v) for v in row] for row in rows] == [
        [type(v) for v in row] for row in theirs
    ]
    return rows


def test_rows_are_those_of_sqlalchemy(db: Session):
    put(db, "one", aside=True, tags={"a": [1, "ä"]}, turns=3)
    put(db, "two", aside=True, turns=1)
    put(db, "three")

    assert same(NAMED, db, {"wanted": "one"}) == [(1, "one", True, {"a": [1, "ä"]}, 3)]
    assert same(ASIDE, db, {"aside": True}) == [("one", True, 1), ("two", False, 1)]
    assert same(NAMED, db, {"wanted": "none"}) == []


def test_a_row_is_asked_by_the_names_of_its_columns(db: Session):
    put(db, "one", turns=3)

    row = NAMED.first(db, {"wanted": "one"})

    assert (row.name, row.aside, row.turns) == ("one", False, 3)
    assert NAMED.first(db, {"wanted": "none"}) is None


def test_an_insert_takes_the_columns_that_are_named(db: Session):
    assert ADD.first(db, {"name": "one", "turns": 1}).id == 1
    assert ADD.first(db, {"name": "two", "turns": 1, "aside": True}).id == 2

    assert NAMED.first(db, {"wanted": "one"}).aside is False
    assert NAMED.first(db, {"wanted": "two"}).aside is True


def test_a_default_of_python_is_not_forgotten(db: Session):
    ADD.first(db, {"name": "one"})

    assert NAMED.first(db, {"wanted": "one"}).turns == 7


def test_a_change_is_part_of_the_transaction_of_the_session(db: Session):
    put(db, "one")
    db.commit()

    TURN.run(db, {"wanted": "one", "more": 2})
    assert NAMED.first(db, {"wanted": "one"}).turns == 2
    db.rollback()

    assert NAMED.first(db, {"wanted": "one"}).turns == 0


def test_a_list_of_any_length_can_be_asked_for(db: Session):
    for name in ("one", "two", "three"):
        put(db, name)

    assert len(AMONG.all(db, {"names": ["one", "two"]})) == 2
    assert len(AMONG.all(db, {"names": ["one", "two", "three"]})) == 3
    assert AMONG.all(db, {"names": []}) == []


def test_a_refusal_of_the_database_is_one_of_sqlalchemy(db: Session):
    put(db, "one")

    with pytest.raises(IntegrityError):
        put(db, "one")


def test_a_value_that_is_missing_is_an_error(db: Session):
    with pytest.raises(KeyError, match="wanted"):
        NAMED.first(db)


def test_who_listens_to_statements_hears_them(db: Session, asked: list[str]):
    put(db, "one")
    NAMED.first(db, {"wanted": "one"})
    TURN.run(db, {"wanted": "one", "more": 1})

    assert [s.split()[0] for s in asked if "cards" in s] == [
        "INSERT",
        "SELECT",
        "UPDATE",
    ]
