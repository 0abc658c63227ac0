"""What a process does that a test of migrations starts beside others."""

import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path

from app.database.engine import make_engine
from app.database.schema import hold_migration_lock, upgrade_schema_if_outdated
from tests.browser.server import say_into


def migrate(address: str, begin: "Connection[str, str]", said: Path) -> None:
    """Bring a database up to date once told to begin; what is said is in a file."""
    say_into(said)
    begin.recv()
    upgrade_schema_if_outdated(make_engine(address), _say)
    _say("ready")


def _say(word: str) -> None:
    sys.stdout.write(f"{word}\n")


def hold(address: str, alone: "Connection[str, str]") -> None:
    """Begin to migrate, say so, and come to no end."""
    with hold_migration_lock(make_engine(address)):
        alone.send("alone")
        time.sleep(600)
