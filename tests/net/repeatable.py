"""Makes a process repeatable: its clock stands still, and its chance is seeded."""

import ctypes
import datetime as dt
import gc
import importlib
import os
import random
import secrets
import time

_START = dt.datetime(2026, 12, 1, 17, 0, tzinfo=dt.UTC)
_chance = random.Random()
_moment = [_START]


def freeze() -> None:
    """Replace the clock and the chance of this process, before the app is imported.

    The clock is replaced inside the type: a class in the place of `datetime` would be
    unknown to pydantic and SQLAlchemy.
    """
    os.environ["TZ"] = "UTC"
    time.tzset()
    inside = gc.get_referents(dt.datetime.__dict__)
    members = next(found for found in inside if isinstance(found, dict))
    members["now"] = staticmethod(lambda tz=None: _moment[0].replace(tzinfo=tz))
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(dt.datetime))
    time.time = _seconds
    secrets.choice, secrets.randbits = _chance.choice, _chance.getrandbits
    secrets.randbelow = _chance.randrange
    secrets.token_bytes = lambda size=32: _chance.randbytes(size)


def _seconds() -> float:
    return _moment[0].timestamp()


def seed(words: str) -> None:
    """Begin the chance of this process anew."""
    _chance.seed(words)
    random.seed(words)


def advance(**step: float) -> None:
    """Move the clock, e.g. by `days=1`."""
    _moment[0] += dt.timedelta(**step)


def perform(run: str) -> dict[str, str]:
    """Freeze this process; the texts of a function of `tests.net.runs`."""
    freeze()
    texts: dict[str, str] = getattr(importlib.import_module("tests.net.runs"), run)()
    return texts
