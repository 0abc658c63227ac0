"""An installation with people in it, to be copied, lost and put back."""

import dataclasses
import datetime as dt
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlmodel import Session, select

from app.database.engine import make_engine
from app.database.installation import Installation, load_or_create_secret_key
from app.database.tables import Learner
from tests.databases import Databases

NOW = dt.datetime(2026, 6, 9, 12, 0, tzinfo=dt.UTC)


@pytest.fixture
def installation(tmp_path: Path, databases: Databases) -> Iterator[Installation]:
    """A data folder with a key and a database without rows."""
    data = tmp_path / "data"
    data.mkdir()
    with databases.empty(data) as address:
        made = Installation(data, address, "", data / "backups")
        load_or_create_secret_key("", made.secret_file)
        yield made


@pytest.fixture
def fresh(tmp_path: Path, databases: Databases) -> Iterator[Installation]:
    """Another machine: no data folder yet, and a database without tables."""
    with databases.blank(tmp_path / "new") as address:
        yield Installation(tmp_path / "new", address, "", tmp_path / "new" / "backups")


@pytest.fixture
def enroll() -> Callable[..., None]:
    """Write people down in the database of an installation."""

    def enroll(installation: Installation, *names: str) -> None:
        engine = make_engine(installation.database_url)
        with Session(engine) as db:
            db.add_all(Learner(key=name, created_at=0) for name in names)
            db.commit()
        engine.dispose()

    return enroll


@pytest.fixture
def people() -> Callable[[Installation], set[str]]:
    """Who is written down in the database of an installation."""

    def people(installation: Installation) -> set[str]:
        engine = make_engine(installation.database_url)
        with Session(engine) as db:
            found = set(db.exec(select(Learner.key)))
        engine.dispose()
        return found

    return people


@pytest.fixture
def with_key() -> Callable[[Installation, str], Installation]:
    """The installation with its key given by the environment."""
    return lambda installation, key: dataclasses.replace(installation, configured_key=key)
