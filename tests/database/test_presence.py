"""A database file that is deleted, moved or replaced while it is in use."""

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import Engine, event, select, text
from sqlmodel import Session

from app.database.engine import create_write_session_opener, make_engine
from app.database.file_guards import DatabaseGoneError, expect_same_database_file
from app.database.schema import upgrade_schema
from app.database.tables import SectionRead
from tests.amounts import each_of_sample
from tests.databases import ABOUT_SQLITE
from tests.loops import outcome

pytestmark = ABOUT_SQLITE


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path / "data" / "headroom.db"


@pytest.fixture
def engine(file: Path) -> Iterator[Engine]:
    engine = make_engine(f"sqlite:///{file}")
    upgrade_schema(engine)
    yield engine
    engine.dispose()


def delete(file: Path) -> None:
    file.unlink()


def rename(file: Path) -> None:
    file.rename(file.with_name("old.db"))


def replace(file: Path) -> None:
    copy = file.with_name("copy.db")
    shutil.copy(file, copy)
    copy.replace(file)


def delete_the_folder(file: Path) -> None:
    shutil.rmtree(file.parent)


def move_the_folder(file: Path) -> None:
    file.parent.rename(file.parent.with_name("elsewhere"))


WAYS = [delete, rename, replace, delete_the_folder, move_the_folder]
Way = Callable[[Path], None]


def write(engine: Engine) -> None:
    async def once() -> None:
        async with create_write_session_opener(engine)() as session:
            session.execute(text("UPDATE learner SET name = 'x'"))

    outcome(once())


def test_a_file_that_stays_is_there(engine: Engine) -> None:
    write(engine)

    expect_same_database_file(engine)


@each_of_sample("way", WAYS, 2)
def test_nobody_writes_into_a_file_that_nobody_will_find(
    engine: Engine, file: Path, way: Way
) -> None:
    write(engine)

    way(file)

    gone = "was deleted, moved or replaced"
    with pytest.raises(DatabaseGoneError, match=gone):
        expect_same_database_file(engine)
    with pytest.raises(DatabaseGoneError, match=gone):
        write(engine)


@each_of_sample("way", WAYS, 2)
def test_no_new_file_is_made_in_its_place(engine: Engine, file: Path, way: Way) -> None:
    with engine.connect():  # so that the next needs a connection of its own
        way(file)
        with pytest.raises(DatabaseGoneError), engine.connect():
            pass

    assert file.exists() is (way is replace)


def test_a_file_that_comes_back_is_there_again(engine: Engine, file: Path) -> None:
    rename(file)
    with pytest.raises(DatabaseGoneError):
        expect_same_database_file(engine)

    file.with_name("old.db").rename(file)

    expect_same_database_file(engine)
    write(engine)


def test_whoever_closed_every_connection_may_open_another_file(engine: Engine, file: Path) -> None:
    engine.dispose()
    replace(file)

    write(engine)

    expect_same_database_file(engine)


def read(client: TestClient) -> int:
    return client.post("/concepts/weights/readings").status_code


@pytest.mark.parametrize("way", [delete, rename, replace])
def test_a_write_after_the_file_vanished_fails_with_a_number(
    rosa: TestClient, tmp_path: Path, way: Way
) -> None:
    assert read(rosa) == 303

    way(tmp_path / "headroom.db")

    answer = rosa.post("/concepts/weights/readings", data={"section": "try-it"})
    assert answer.status_code == 500
    assert re.search(r"It is logged as [0-9a-f]{8}\.", answer.text)
    assert rosa.get("/concepts/weights").status_code == 200


@pytest.fixture
def _read_only(app: FastAPI) -> Iterator[None]:
    """As when the disk is mounted anew for reading only."""

    def refuse(connection, *_rest) -> None:
        connection.execute("PRAGMA query_only=ON")

    app.state.engine.dispose()
    event.listen(app.state.engine, "connect", refuse)
    yield
    event.remove(app.state.engine, "connect", refuse)
    app.state.engine.dispose()


@pytest.mark.usefixtures("_read_only")
def test_where_nothing_can_be_written_reading_goes_on(rosa: TestClient, session: Session) -> None:
    answer = rosa.post("/concepts/weights/readings")

    assert answer.status_code == 500
    assert "Nothing that was confirmed before is lost." in answer.text
    assert rosa.get("/concepts/weights").status_code == 200
    assert session.execute(select(SectionRead.id)).all() == []
