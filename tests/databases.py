"""An empty database for each test: a SQLite file, or one of a PostgreSQL server."""

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, make_url
from sqlalchemy.pool import NullPool

from app.database.engine import make_engine
from app.database.schema import upgrade_schema

SERVER = os.environ.get("HEADROOM_TEST_DATABASE_URL", "")
"""Address of a server on which the tests may make and drop databases, or nothing."""
ABOUT_SQLITE = pytest.mark.skipif(bool(SERVER), reason="is about SQLite")
NAME = "headroom.db"


class Files:
    """SQLite: one file that was migrated once, copied for each test."""

    def __init__(self, folder: Path) -> None:
        self._template = folder / NAME
        _migrate(f"sqlite:///{self._template}")

    @contextlib.contextmanager
    def blank(self, folder: Path) -> Iterator[str]:
        """The address of a database without tables."""
        yield f"sqlite:///{folder / NAME}"

    @contextlib.contextmanager
    def empty(self, folder: Path) -> Iterator[str]:
        """The address of a database with every table and no row."""
        shutil.copy(self._template, folder / NAME)
        yield f"sqlite:///{folder / NAME}"

    def close(self) -> None:
        """The folder goes by itself."""


class Server:
    """PostgreSQL: one database that was migrated once, the template of all others.

    Names are random, so several test processes can share a server.
    """

    def __init__(self, address: str) -> None:
        self._url = make_url(address)
        self._admin: Engine = create_engine(
            self._url, isolation_level="AUTOCOMMIT", poolclass=NullPool
        )
        self._template = _name()
        # Words in another order than that of SQLite, as most servers have it.
        self._say(
            f"CREATE DATABASE {self._template} TEMPLATE template0"
            " LOCALE_PROVIDER icu ICU_LOCALE 'en-US'"
        )
        _migrate(self._address(self._template))

    @contextlib.contextmanager
    def blank(self, _folder: Path) -> Iterator[str]:
        """The address of a database without tables; it is dropped afterwards."""
        with self._copy_of("template0") as address:
            yield address

    @contextlib.contextmanager
    def empty(self, _folder: Path) -> Iterator[str]:
        """The address of a database with every table and no row; dropped afterwards."""
        with self._copy_of(self._template) as address:
            yield address

    def close(self) -> None:
        """Leave nothing on the server."""
        self._say(f"DROP DATABASE {self._template} WITH (FORCE)")

    @contextlib.contextmanager
    def _copy_of(self, template: str) -> Iterator[str]:
        name = _name()
        self._say(f"CREATE DATABASE {name} TEMPLATE {template}")
        try:
            yield self._address(name)
        finally:
            self._say(f"DROP DATABASE {name} WITH (FORCE)")

    def _address(self, name: str) -> str:
        url = self._url.set(database=name)
        return url.render_as_string(hide_password=False)

    def _say(self, words: str) -> None:
        with self._admin.connect() as connection:
            connection.exec_driver_sql(words)


Databases = Files | Server


def databases_in(folder: Path) -> Databases:
    """Where the databases of the tests come from: files in `folder`, or a server."""
    return Server(SERVER) if SERVER else Files(folder)


def _name() -> str:
    return f"headroom_test_{uuid.uuid4().hex}"


def _migrate(address: str) -> None:
    engine = make_engine(address)
    upgrade_schema(engine)
    engine.dispose()
