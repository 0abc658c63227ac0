"""The browsers of learners: a row for each, which says whether it may still come in."""

import dataclasses
import datetime as dt
from typing import Any

from sqlalchemy import bindparam, select
from sqlmodel import Session, col, update

from app.db.insert_once import insert_if_absent
from app.db.quotas import SESSIONS, check_quota
from app.db.tables import Learner, LearnerSession
from app.web.clock import from_milliseconds, to_milliseconds

_SEEN = (
    update(LearnerSession)
    .where(col(LearnerSession.digest) == bindparam("wanted"))
    .values(last_seen=bindparam("now"), device=bindparam("named"))
)


@dataclasses.dataclass(frozen=True, slots=True)
class BrowserVisit:
    """A browser that comes: the digest of its key, what it is, and when."""

    digest: str
    device: str
    at: dt.datetime


@dataclasses.dataclass(frozen=True, slots=True)
class BrowserSession:
    """A session that may come in; `here` marks that of the browser that asks."""

    id: int
    device: str
    since: dt.datetime
    last_seen: dt.datetime
    here: bool


def begin_session(db: Session, learner_id: int, arrival: BrowserVisit) -> None:
    """Let a browser come in as this learner from now on.

    Raises Conflict where the learner has had as many browsers as one may have; those
    that were signed out count, for their rows stay.
    """
    at = to_milliseconds(arrival.at)
    row = LearnerSession(
        learner_id=learner_id,
        digest=arrival.digest,
        device=arrival.device,
        created_at=at,
        last_seen=at,
    )
    if insert_if_absent(db, LearnerSession, row.model_dump(exclude={"id"})) is not None:
        theirs = col(LearnerSession.learner_id).in_(rows_of(learner_id))
        check_quota(db, SESSIONS, theirs)


def rows_of(learner_id: int) -> Any:
    """The rows of the person whose row this is, one for each of their courses."""
    mine = select(col(Learner.person)).where(col(Learner.id) == learner_id)
    return select(col(Learner.id)).where(col(Learner.person) == mine.scalar_subquery())


def touch_session(db: Session, arrival: BrowserVisit) -> None:
    """Note that a session is in use."""
    now = to_milliseconds(arrival.at)
    db.connection().execute(_SEEN, {"wanted": arrival.digest, "now": now, "named": arrival.device})


def browsers(db: Session, learner_id: int, digest: str) -> list[BrowserSession]:
    """The sessions of a learner that stand: the asking one, then the newest first."""
    rows = db.execute(
        select(
            col(LearnerSession.id),
            col(LearnerSession.device),
            col(LearnerSession.created_at),
            col(LearnerSession.last_seen),
            col(LearnerSession.digest) == digest,
        )
        .where(
            col(LearnerSession.learner_id).in_(rows_of(learner_id)),
            col(LearnerSession.revoked_at).is_(None),
        )
        .order_by(col(LearnerSession.last_seen).desc(), col(LearnerSession.id).desc())
    )
    found = [
        BrowserSession(
            number, device, from_milliseconds(since), from_milliseconds(seen), bool(here)
        )
        for number, device, since, seen, here in rows
    ]
    return sorted(found, key=lambda browser: not browser.here)


def digests_of(db: Session, learner_id: int) -> frozenset[str]:
    """The digests of all sessions of a learner, revoked ones too."""
    rows = db.scalars(
        select(col(LearnerSession.digest)).where(
            col(LearnerSession.learner_id).in_(rows_of(learner_id))
        )
    )
    return frozenset(rows)


def revoke(db: Session, learner_id: int, number: int, now: dt.datetime) -> str | None:
    """End one session of a learner; its digest, None where there is no such session."""
    ended: str | None = db.scalar(
        _revoking(now)
        .where(
            col(LearnerSession.id) == number,
            col(LearnerSession.learner_id).in_(rows_of(learner_id)),
        )
        .returning(col(LearnerSession.digest))
    )
    return ended


def revoke_others(db: Session, learner_id: int, digest: str, now: dt.datetime) -> None:
    """End every session of a learner but one."""
    db.execute(
        _revoking(now).where(
            col(LearnerSession.learner_id).in_(rows_of(learner_id)),
            col(LearnerSession.digest) != digest,
        )
    )


def revoke_own_session(db: Session, digest: str, now: dt.datetime) -> None:
    """End the session of this digest, where there is one."""
    db.execute(_revoking(now).where(col(LearnerSession.digest) == digest))


def _revoking(now: dt.datetime) -> Any:
    # The row stays, so that a cookie that still goes round is never taken for new.
    return (
        update(LearnerSession)
        .where(col(LearnerSession.revoked_at).is_(None))
        .values(revoked_at=to_milliseconds(now))
    )
