"""Whether a database has the newest shape, asked without loading the migrations."""

from pathlib import Path

from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

VERSIONS = Path(__file__).resolve().parents[2] / "migrations" / "versions"


def newest() -> str:
    """The number of the last migration: files are named NNNN_what_it_does.py."""
    return max(path.name.partition("_")[0] for path in VERSIONS.glob("[0-9]*_*.py"))


def is_current(engine: Engine) -> bool:
    """Whether the last migration has run; false where nothing can be told.

    Loading the migration tool takes a third of a second, which a server that is
    started again need not wait for.
    """
    try:
        with engine.connect() as connection:
            row = connection.execute(text("SELECT version_num FROM alembic_version"))
            return row.scalar() == newest()
    except DBAPIError:
        return False
