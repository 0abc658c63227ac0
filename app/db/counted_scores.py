"""What counts of an attempt: its newest regrade, or what was written with it.

Everybody who reads a score reads `SCORE` from `GRADED`, so that an answer that was
graded again counts anew wherever it counts. The score of the log itself is asked for
only where both are shown.
"""

from typing import Any

from sqlalchemy import ColumnElement, FromClause, func, select

from app.db import tables  # noqa: F401 - fills the metadata
from app.db.tables import TABLES

ATTEMPT = TABLES["attempt"]
REGRADE = TABLES["regrade"]

_later = REGRADE.alias("later")
_is_followed = (
    select(_later.c.id)
    .where(_later.c.attempt_id == REGRADE.c.attempt_id, _later.c.after == REGRADE.c.id)
    .correlate(REGRADE)
    .exists()
)
NEWEST: ColumnElement[bool] = (REGRADE.c.attempt_id == ATTEMPT.c.id) & ~_is_followed
"""Joins an attempt with the one regrade of it that none follows."""
GRADED: FromClause = ATTEMPT.outerjoin(REGRADE, NEWEST)
"""Every attempt, beside its newest regrade where it was graded again."""
SCORE: ColumnElement[Any] = func.coalesce(REGRADE.c.score, ATTEMPT.c.score)
"""The score that counts."""
REVISION: ColumnElement[Any] = func.coalesce(REGRADE.c.revision, ATTEMPT.c.revision)
"""The wording that the score was given by."""
