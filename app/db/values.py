"""Values that a database has no room for: what was sent is wrong, not the server.

Forms and addresses refuse what they can name. This is the net below them: numbers
beyond 32 or 64 bits, and characters that no text may hold.
"""

import logging

from sqlalchemy import Engine, event
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DataError

from app.errors import InvalidInputError

_log = logging.getLogger("headroom")
_MESSAGE = (
    "Something that was sent cannot be saved: a number is too large, or a text holds "
    "a character that no text may hold."
)


def refuse_bad_values(engine: Engine) -> None:
    """Let every statement of this engine raise `InvalidInputError` for a value without room."""
    event.listen(engine, "handle_error", _instead)


def invalid_value_error(error: BaseException) -> InvalidInputError:
    """What is raised in the place of a driver's error; logged without the value."""
    _log.warning("the database had no room for a value (%s)", type(error).__name__)
    return InvalidInputError(_MESSAGE, hint="Check what was typed, then send it again.")


def _instead(context: ExceptionContext) -> Exception | None:
    error = context.original_exception
    # SQLite's driver raises Python's own errors, before the database has a say.
    if isinstance(error, OverflowError | UnicodeEncodeError) or isinstance(
        context.sqlalchemy_exception, DataError
    ):
        return invalid_value_error(error)
    return None
