"""Who is asking: a value from the signed cookie; the row comes with the first write."""

import dataclasses
import datetime as dt
import secrets
import zoneinfo
from typing import Annotated

from fastapi import Depends, Request
from itsdangerous import BadSignature, Signer
from sqlmodel import Session

from app.db.engine import DbSession
from app.learners.store import enrol, find_learner
from app.web.clock import Now

COOKIE = "headroom"
_TWO_YEARS = 2 * 365 * 24 * 3600
_ROLLOVER = dt.timedelta(hours=4)


@dataclasses.dataclass(frozen=True, slots=True)
class CurrentLearnerValue:
    """The asker: `id` is 0 until something of theirs is kept."""

    key: str
    id: int = 0
    name: str = ""
    zone: str = "UTC"
    exam_day: dt.date | None = None
    minutes_a_day: int = 30
    retention: float = 0.9
    target: int | None = None

    def study_day(self, now: dt.datetime) -> dt.date:
        """The day `now` belongs to for this learner: it turns at 04:00 local time."""
        local = now.astimezone(zoneinfo.ZoneInfo(self.zone))
        return (local - _ROLLOVER).date()


def read_learner(request: Request, db: DbSession) -> CurrentLearnerValue:
    """The learner of the cookie; a new one when there is none or a forged one."""
    signer: Signer = request.app.state.signer
    try:
        key = signer.unsign(request.cookies.get(COOKIE, "")).decode()
    except BadSignature:
        key = secrets.token_urlsafe(24)
        request.state.new_cookie = signer.sign(key).decode()
        return CurrentLearnerValue(key=key)
    return load_learner(db, key)


def load_learner(db: Session, key: str) -> CurrentLearnerValue:
    """The learner of `key` as a value, with defaults before the first write."""
    row = find_learner(db, key)
    if row is None:
        return CurrentLearnerValue(key=key)
    return CurrentLearnerValue(
        key=key,
        id=row.id or 0,
        name=row.name,
        zone=row.zone,
        exam_day=dt.date.fromisoformat(row.exam_day) if row.exam_day else None,
        minutes_a_day=row.minutes_a_day,
        retention=row.retention,
        target=row.target,
    )


def enrolled(
    learner: Annotated[CurrentLearnerValue, Depends(read_learner)],
    db: DbSession,
    now: Now,
) -> CurrentLearnerValue:
    """The learner with a row to write for: what every POST route asks for."""
    if learner.id:
        return learner
    row = enrol(db, learner.key, now)
    return dataclasses.replace(learner, id=row.id or 0)


CurrentLearner = Annotated[CurrentLearnerValue, Depends(read_learner)]
EnrolledLearner = Annotated[CurrentLearnerValue, Depends(enrolled)]
