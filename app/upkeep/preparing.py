"""What happens before a server starts: folder, database and files are made ready."""

import datetime as dt
import logging
import sqlite3

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from app.db.database_url import redact_url, without_password
from app.db.erasure import vacuum_at_start
from app.db.failures import is_full
from app.db.schema_state import UnusableDatabaseError, full_disk, sqlite_file
from app.db.upgrading import keep_private, migrate_database, migrating_alone
from app.upkeep.daily import copy_before_migration
from app.upkeep.files import keep_new_files_private, make_private
from app.upkeep.installation import Installation, InstallationError
from app.upkeep.rotation import copies

_log = logging.getLogger("headroom")


def prepare(installation: Installation, now: dt.datetime) -> None:
    """Bring the database up to date, and let its owner alone read what is kept.

    Raises Unusable, in one sentence, where the database must not be used.
    """
    keep_new_files_private()
    engine = installation.engine()
    try:
        migrate_database(engine, lambda old: copy_before_migration(installation, old, now))
        engine.dispose()
        _remove_traces(engine)
        keep_private(engine)
        make_private(installation.secret_file)
    except UnusableDatabaseError as error:
        raise InstallationError(f"{error}{_newest_copy(installation)}") from None
    except DBAPIError as error:
        if error.orig is not None and is_full(error.orig):
            raise InstallationError(full_disk(installation.data)) from None
        said = " ".join(without_password(error.orig, installation.database).split())
        raise InstallationError(
            f"the database {redact_url(installation.database)} cannot be opened ({said}): "
            "check the address and that the server runs, or set HEADROOM_DATABASE_URL "
            "to another."
        ) from None
    except OSError as error:
        if is_full(error):
            raise InstallationError(full_disk(installation.data)) from None
        raise InstallationError(
            f"{error.filename or installation.data} cannot be written "
            f"({error.strerror}): give this user the right to, or set HEADROOM_DATA."
        ) from None
    finally:
        engine.dispose()


def _remove_traces(engine: Engine) -> None:
    """Rewrite a database in which an erasure is noted; the start goes on without."""
    if engine.dialect.name != "sqlite":
        return
    try:
        with migrating_alone(engine):
            vacuum_at_start(sqlite_file(engine))
    except sqlite3.Error as error:
        _log.warning("What erased learners left is not removed yet: %s.", error)


def _newest_copy(installation: Installation) -> str:
    found = copies(installation.backups) if installation.backups else {}
    return f" The newest copy is {list(found)[-1]}." if found else ""
