"""The pages that were read are those of now, whatever was kept of before."""

from collections.abc import Callable, Iterator

import pytest
from fastapi import FastAPI
from sqlalchemy import Engine
from sqlmodel import Session, col, select
from sqlmodel.sql.expression import SelectOfScalar

from app.database.engine import make_engine
from app.database.tables import Learner, SectionRead
from app.mastery.store import PageProgress, load_pages_read

Change = Callable[[Session, int], None]


def more(db: Session, learner: int) -> None:
    db.add(SectionRead(learner_id=learner, topic="weights", section="bytes", at=30))


def again(db: Session, learner: int) -> None:
    mark = db.exec(mine(learner).where(col(SectionRead.section) == "size")).one()
    mark.at = 40
    db.add(mark)


def removed(db: Session, learner: int) -> None:
    db.delete(db.exec(mine(learner).where(col(SectionRead.topic) == "kv-cache")).one())


def mine(learner: int) -> SelectOfScalar[SectionRead]:
    return select(SectionRead).where(col(SectionRead.learner_id) == learner)


@pytest.fixture
def other(database: str) -> Iterator[Engine]:
    """Another process, which has nothing in mind."""
    engine = make_engine(database)
    yield engine
    engine.dispose()


@pytest.fixture
def learner(app: FastAPI) -> int:
    with Session(app.state.engine) as db:
        ada = Learner(key="ada", created_at=0)
        db.add(ada)
        db.flush()
        number = ada.id or 0
        db.add(SectionRead(learner_id=number, topic="weights", section="size", at=10))
        db.add(SectionRead(learner_id=number, topic="kv-cache", section="", at=20))
        db.commit()
    return number


def read(engine: Engine, learner: int) -> list[PageProgress]:
    with Session(engine) as db:
        return list(load_pages_read(db, learner))


@pytest.mark.parametrize("change", [more, again, removed])
def test_what_changes_is_seen_at_the_next_look(
    app: FastAPI, learner: int, other: Engine, change: Change
):
    before = read(app.state.engine, learner)
    assert [page.topic for page in before] == ["kv-cache", "weights"]

    with Session(app.state.engine) as db:
        change(db, learner)
        db.commit()

    now = read(app.state.engine, learner)
    assert now == read(other, learner)
    assert now != before


def test_a_learner_who_read_nothing_has_no_page(app: FastAPI, learner: int):
    assert read(app.state.engine, learner + 1) == []
