"""What a learner is shown of their readiness is written down, once a study day."""

import logging

from fastapi import Request
from sqlalchemy.exc import SQLAlchemyError

from app.db.engine import DbSession, run_query, write_in_own_transaction
from app.progress.snapshot import CurrentSnapshot
from app.progress.store import predictions

_log = logging.getLogger("headroom")


async def log_prediction(request: Request, snapshot: CurrentSnapshot, db: DbSession) -> None:
    """Keep the first prediction of the day before the page with it goes out.

    The pages are GET and change nothing for the learner, so `changes` stays as it is
    and kept pages hold. A log that cannot be written is no reason to show no page.
    """
    ahead, learner = snapshot.ahead, snapshot.learner
    if ahead is None or not learner.id:
        return
    day = snapshot.day
    if await run_query(db, lambda: predictions.is_kept(db, learner.id, ahead.exam, day)):
        return
    when = (day, snapshot.now)
    try:
        await write_in_own_transaction(
            request,
            lambda own: predictions.keep_first(own, learner.id, ahead, learner.target, when),
        )
    except SQLAlchemyError:
        _log.exception("a prediction could not be written down")
