"""Makes a database ready at the start: examined, and brought to the newest shape."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from sqlalchemy import Engine, text

from app.db.locks import file_lock
from app.db.schema_state import (
    BESIDE,
    UnusableDatabaseError,
    latest_revision,
    schema_revision,
    sqlite_file,
)

_KEY = int.from_bytes(b"headroom", "big")
_WITHOUT_LIMIT = (
    "lock_timeout",
    "statement_timeout",
    "idle_in_transaction_session_timeout",
)


def migrate_database(engine: Engine, before: Callable[[str], object]) -> None:
    """Migrate what has to be migrated, one process at a time; the others wait.

    `before` is called with the revision of a database that will be migrated. Raises
    UnusableDatabase, and changes nothing, where the database must not be used.
    """
    if engine.dialect.name != "sqlite" and schema_revision(engine) == latest_revision():
        return
    with migrating_alone(engine):
        revision = schema_revision(engine)
        if revision == latest_revision():
            return
        from app.db.migrate import upgrade  # noqa: PLC0415 - slow, seldom needed

        if revision:
            before(revision)
        upgrade(engine)


def migrating_alone(engine: Engine) -> AbstractContextManager[None]:
    """Nobody else migrates this database meanwhile, in any process."""
    if engine.dialect.name != "sqlite":
        return _server_lock(engine)
    path = sqlite_file(engine)
    if not path.parent.is_dir():
        raise UnusableDatabaseError(
            f"the folder {path.parent} of the database is missing: make it, or set "
            "HEADROOM_DATABASE_URL to another place."
        )
    return file_lock(Path(f"{path}.lock"))


def keep_private(engine: Engine) -> None:
    """Let nobody but the owner read a SQLite database and what lies beside it."""
    if engine.dialect.name != "sqlite":
        return
    path = sqlite_file(engine)
    for name in (path, *(Path(f"{path}{end}") for end in BESIDE)):
        # Whoever is not the owner may not change it; `headroom doctor` says so.
        with contextlib.suppress(FileNotFoundError, PermissionError):
            name.chmod(0o600)


@contextlib.contextmanager
def _server_lock(engine: Engine) -> Iterator[None]:
    with engine.begin() as connection:
        for name in _WITHOUT_LIMIT:
            connection.execute(text(f"SET LOCAL {name} = 0"))
        # It ends with the transaction, so also when this process dies.
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _KEY})
        yield
