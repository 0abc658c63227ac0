"""Author links, sessions, audit log."""

import dataclasses
import datetime as dt
import secrets
from collections.abc import Sequence
from typing import Literal

from sqlalchemy import ColumnElement, bindparam, select
from sqlmodel import Session, col, delete, update

from app.clock import from_milliseconds, to_milliseconds
from app.database.tables import AuditEntry, AuthorLink, AuthorSession

LIFE = dt.timedelta(minutes=15)
"""How long a link works."""
STAY = dt.timedelta(days=30)
"""How long a browser stays in after its last use of the bench."""
RENEWAL = dt.timedelta(days=1)
"""How old the last use may be before it is written down anew."""


def new_token() -> str:
    """A word of 256 bits: nobody guesses it, so nobody needs to be locked out."""
    return secrets.token_urlsafe(32)


def link_of(address: str, token: str) -> str:
    """The link as it is printed; `address` is that of the server."""
    return f"{address}/authoring/enter?token={token}"


State = Literal["good", "used", "expired", "unknown"]
COMMAND_LINE = 0
"""The session of what was done in a terminal."""
_TOLD = dt.timedelta(days=7)  # for so long an old link is told from one never made
_FIND = select(col(AuthorSession.id), col(AuthorSession.last_used)).where(
    col(AuthorSession.digest) == bindparam("wanted"),
    col(AuthorSession.revoked_at).is_(None),
    col(AuthorSession.last_used) > bindparam("since"),
)


@dataclasses.dataclass(frozen=True, slots=True)
class SignedInAuthor:
    """A browser that was let in; `last_used` is told to within a day."""

    id: int
    last_used: dt.datetime


@dataclasses.dataclass(frozen=True, slots=True)
class AuthorSessionRow:
    """A session as a list shows it."""

    id: int
    device: str
    created: dt.datetime
    last_used: dt.datetime


@dataclasses.dataclass(frozen=True, slots=True)
class AuditRecord:
    """Something that an author did; `session` is 0 for the command line."""

    at: dt.datetime
    session: int
    action: str
    subject: str = ""


def add_link(db: Session, digest: str, now: dt.datetime) -> None:
    """Keep a link that was just made, and forget those that ended long ago."""
    old = to_milliseconds(now - _TOLD)
    db.execute(delete(AuthorLink).where(col(AuthorLink.expires_at) < old))
    db.add(
        AuthorLink(
            digest=digest,
            created_at=to_milliseconds(now),
            expires_at=to_milliseconds(now + LIFE),
        )
    )
    record(db, AuditRecord(now, COMMAND_LINE, "link made"))


def state_of(db: Session, digest: str, now: dt.datetime) -> State:
    """What a link is good for; asking does not use it up."""
    link = db.execute(
        select(col(AuthorLink.used_at), col(AuthorLink.expires_at)).where(
            col(AuthorLink.digest) == digest
        )
    ).first()
    if link is None:
        return "unknown"
    if link.used_at is not None:
        return "used"
    return "good" if link.expires_at > to_milliseconds(now) else "expired"


def use_link(db: Session, digest: str, now: dt.datetime) -> bool:
    """Use a link up; says whether it was good. Of two who try, one succeeds."""
    used = db.scalar(
        update(AuthorLink)
        .where(
            col(AuthorLink.digest) == digest,
            col(AuthorLink.used_at).is_(None),
            col(AuthorLink.expires_at) > to_milliseconds(now),
        )
        .values(used_at=to_milliseconds(now))
        .returning(col(AuthorLink.id))
    )
    return used is not None


def begin_session(db: Session, digest: str, device: str, now: dt.datetime) -> int:
    """Let a browser in; returns the number of its session."""
    at = to_milliseconds(now)
    row = AuthorSession(digest=digest, device=device, created_at=at, last_used=at)
    db.add(row)
    db.flush()
    number = row.id or 0
    record(db, AuditRecord(now, number, "session began", device))
    return number


def find(db: Session, digest: str, now: dt.datetime) -> SignedInAuthor | None:
    """The session of a cookie; None where it was revoked, is over, or never was."""
    values = {"wanted": digest, "since": to_milliseconds(now - STAY)}
    row = db.connection().execute(_FIND, values).first()
    return SignedInAuthor(row[0] or 0, from_milliseconds(row[1])) if row else None


def renew(db: Session, number: int, now: dt.datetime) -> None:
    """Note that a session is in use."""
    db.execute(
        update(AuthorSession)
        .where(col(AuthorSession.id) == number)
        .values(last_used=to_milliseconds(now))
    )


def sessions(db: Session, now: dt.datetime) -> list[AuthorSessionRow]:
    """The sessions that let a browser in, the first one first."""
    rows = db.execute(
        select(
            col(AuthorSession.id),
            col(AuthorSession.device),
            col(AuthorSession.created_at),
            col(AuthorSession.last_used),
        )
        .where(*_standing(now))
        .order_by(col(AuthorSession.id))
    )
    return [
        AuthorSessionRow(number, device, from_milliseconds(created), from_milliseconds(used))
        for number, device, created, used in rows
    ]


def revoke(db: Session, wanted: Sequence[int], by: int, now: dt.datetime) -> list[int]:
    """End sessions; returns those that stood until now. `by` is who asked for it."""
    ended = db.scalars(
        update(AuthorSession)
        .where(col(AuthorSession.id).in_(wanted), *_standing(now))
        .values(revoked_at=to_milliseconds(now))
        .returning(col(AuthorSession.id))
    ).all()
    for number in ended:
        record(db, AuditRecord(now, by, "session revoked", f"session {number}"))
    return [int(number) for number in ended if number is not None]


def record(db: Session, deed: AuditRecord) -> None:
    """Write down what an author did: never an answer, a name or a secret."""
    db.add(
        AuditEntry(
            at=to_milliseconds(deed.at),
            session=deed.session,
            action=deed.action,
            subject=deed.subject,
        )
    )


def deeds(db: Session, most: int) -> list[AuditRecord]:
    """The newest entries of the audit log, the newest first."""
    rows = db.execute(
        select(
            col(AuditEntry.at),
            col(AuditEntry.session),
            col(AuditEntry.action),
            col(AuditEntry.subject),
        )
        .order_by(col(AuditEntry.id).desc())
        .limit(most)
    )
    return [
        AuditRecord(from_milliseconds(at), by, action, subject) for at, by, action, subject in rows
    ]


def _standing(now: dt.datetime) -> tuple[ColumnElement[bool], ...]:
    since = to_milliseconds(now - STAY)
    return (
        col(AuthorSession.revoked_at).is_(None),
        col(AuthorSession.last_used) > since,
    )
