"""What most commands open: the data folder, the database, the public address."""

import argparse
import contextlib
import datetime as dt
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Engine, make_url
from sqlalchemy.exc import ArgumentError

from app.cli.settings import read_settings
from app.cli.stop import CommandError
from app.config import Settings
from app.db.database_url import redact_url
from app.db.engine import make_engine
from app.db.erasure import vacuum_alone
from app.db.schema_state import is_current, sqlite_file
from app.upkeep.files import ASIDE, give_to_owner, make_private_folder
from app.upkeep.installation import Installation, InstallationError
from app.upkeep.preparing import prepare
from app.web.addresses import server_url


def installation_of(settings: Settings) -> Installation:
    """The installation that the settings name."""
    return Installation(settings.data, settings.database, settings.secret, settings.backups_folder)


@contextlib.contextmanager
def database(settings: Settings) -> Iterator[Engine]:
    """The database of the server, which may be running meanwhile."""
    file = _file_of(settings)
    engine = make_engine(settings.database)
    with keeping_owner(settings):
        try:
            # To open a file of SQLite that is not there would make one.
            if (file and not file.is_file()) or not is_current(engine):
                raise CommandError(
                    "the database is not there yet or has an older shape; start the "
                    "server once, or run `headroom db upgrade`."
                )
            yield engine
        finally:
            engine.dispose()


@contextlib.contextmanager
def keeping_owner(settings: Settings) -> Iterator[None]:
    """Whatever root writes meanwhile belongs to the owner of the data folder."""
    try:
        yield
    finally:
        give_to_owner(settings.data)
        file = _file_of(settings)
        if file is not None and file.parent != settings.data:
            give_to_owner(file.parent, file.name, ASIDE)


def _file_of(settings: Settings) -> Path | None:
    """The file of a SQLite database; None for others, and for no address at all."""
    try:
        url = make_url(settings.database)
    except (ArgumentError, ValueError):
        return None
    if url.get_backend_name() != "sqlite" or not url.database:
        return None
    return Path(url.database)


def address_of(settings: Settings) -> str:
    """Where a browser finds the server."""
    return server_url(settings.url, settings.host, settings.port)


def make_folder(folder: Path) -> None:
    """Make the data folder, for its owner alone; Stop where it cannot be written."""
    try:
        make_private_folder(folder)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink(missing_ok=True)  # another process that starts may be first
    except OSError as error:
        raise CommandError(
            f"the data folder {folder} cannot be written ({error.strerror}); "
            "set HEADROOM_DATA to a folder that can."
        ) from None


@contextlib.contextmanager
def prepared_database(settings: Settings) -> Iterator[None]:
    """Use the data folder, in which the database was made ready."""
    installation = installation_of(settings)
    try:
        with keeping_owner(settings), installation.in_use():
            prepare(installation, dt.datetime.now(dt.UTC))
            yield
    except InstallationError as error:
        raise CommandError(str(error)) from None


def look_after_database(given: argparse.Namespace) -> int:
    """`headroom db upgrade` and `headroom db vacuum`."""
    return {"upgrade": _upgrade, "vacuum": _vacuum}[given.what](read_settings())


def _upgrade(settings: Settings) -> int:
    """Migrate the database."""
    make_folder(settings.data)
    with prepared_database(settings):
        print(f"The database {redact_url(settings.database)} is up to date.")
    return 0


def _vacuum(settings: Settings) -> int:
    """Rewrite the database, so that nothing erased is left in unused space of it."""
    with database(settings) as engine:
        if engine.dialect.name != "sqlite":
            raise CommandError("PostgreSQL removes what was erased by itself (autovacuum).")
        path = sqlite_file(engine)
    try:
        vacuum_alone(path)
    except sqlite3.OperationalError as error:
        raise CommandError(
            f"the database {path} cannot be rewritten ({error}): stop every server "
            "that uses it, and see that its disk has room."
        ) from None
    print(f"{path} was rewritten and has {path.stat().st_size / 1e6:.1f} MB.")
    return 0
