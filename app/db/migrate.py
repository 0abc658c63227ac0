"""Brings a database to the newest shape."""

from collections.abc import Callable
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine

FOLDER = Path(__file__).resolve().parents[2] / "migrations"


def upgrade(engine: Engine) -> None:
    """Run every migration that this database has not seen."""
    _run(engine, lambda config: command.upgrade(config, "head"))


def downgrade(engine: Engine, revision: str = "base") -> None:
    """Undo migrations down to `revision`; for tests and for a way back."""
    _run(engine, lambda config: command.downgrade(config, revision))


def _run(engine: Engine, action: Callable[[Config], object]) -> None:
    config = Config()
    config.set_main_option("script_location", str(FOLDER))
    with engine.connect() as connection:
        _without_foreign_keys(connection, config, action)


def _without_foreign_keys(
    connection: Connection, config: Config, action: Callable[[Config], object]
) -> None:
    # Batch mode rebuilds SQLite tables; with foreign keys on, dropping the old copy
    # would cascade into the rows that point at it.
    sqlite = connection.dialect.name == "sqlite"
    if sqlite:
        connection.exec_driver_sql("COMMIT")
        connection.exec_driver_sql("PRAGMA foreign_keys=OFF")
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    else:
        connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
    config.attributes["connection"] = connection
    action(config)
    connection.commit()
    if sqlite:
        connection.exec_driver_sql("COMMIT")
        connection.exec_driver_sql("PRAGMA foreign_keys=ON")
