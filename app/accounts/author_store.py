"""Stores author links, author sessions and the audit log."""

import dataclasses
import datetime as dt
import secrets
from collections.abc import Sequence
from typing import Literal

from sqlalchemy import ColumnElement, bindparam, select
from sqlmodel import Session, col, delete, update

from app.clock import from_milliseconds, to_milliseconds
from app.database.tables import AuditEntry, AuthorLink, AuthorSession

LINK_LIFETIME = dt.timedelta(minutes=15)
"""How long an author link is valid."""
SESSION_LIFETIME = dt.timedelta(days=30)
"""How long after its last use an author session expires."""
RENEWAL_INTERVAL = dt.timedelta(days=1)
"""Minimum age of the last use before it is updated."""


def generate_author_token() -> str:
    """Return a token of 256 random bits. Guessing it is hopeless, so no lockout is needed."""
    return secrets.token_urlsafe(32)


AuthorLinkState = Literal["good", "used", "expired", "unknown"]
COMMAND_LINE_SESSION = 0
"""The session id of actions on the command line."""
# how long an expired link differs from an unknown one
_USED_LINK_REPORTED_FOR = dt.timedelta(days=7)
_FIND_BY_DIGEST = select(col(AuthorSession.id), col(AuthorSession.last_used)).where(
    col(AuthorSession.digest) == bindparam("wanted"),
    col(AuthorSession.revoked_at).is_(None),
    col(AuthorSession.last_used) > bindparam("since"),
)


@dataclasses.dataclass(frozen=True, slots=True)
class SignedInAuthor:
    """A signed-in author's browser. `last_used` is accurate to a day."""

    id: int
    last_used: dt.datetime


@dataclasses.dataclass(frozen=True, slots=True)
class AuthorSessionRow:
    id: int
    device: str
    created: dt.datetime
    last_used: dt.datetime


@dataclasses.dataclass(frozen=True, slots=True)
class AuditRecord:
    """An audit log entry. `author_session_id` is 0 for the command line."""

    logged_at: dt.datetime
    author_session_id: int
    action: str
    subject: str = ""


def insert_author_link_and_purge_expired(db: Session, token_digest: str, now: dt.datetime) -> None:
    """Store a new link, and delete those that expired long ago."""
    cutoff = to_milliseconds(now - _USED_LINK_REPORTED_FOR)
    db.execute(delete(AuthorLink).where(col(AuthorLink.expires_at) < cutoff))
    db.add(
        AuthorLink(
            digest=token_digest,
            created_at=to_milliseconds(now),
            expires_at=to_milliseconds(now + LINK_LIFETIME),
        )
    )
    record_audit_entry(db, AuditRecord(now, COMMAND_LINE_SESSION, "link made"))


def find_author_link_state(db: Session, token_digest: str, now: dt.datetime) -> AuthorLinkState:
    """Return the state of a link without using it up."""
    link = db.execute(
        select(col(AuthorLink.used_at), col(AuthorLink.expires_at)).where(
            col(AuthorLink.digest) == token_digest
        )
    ).first()
    if link is None:
        return "unknown"
    if link.used_at is not None:
        return "used"
    return "good" if link.expires_at > to_milliseconds(now) else "expired"


def redeem_author_link(db: Session, token_digest: str, now: dt.datetime) -> bool:
    """Use up a link. Returns whether it was valid; of two concurrent uses one succeeds."""
    link_id = db.scalar(
        update(AuthorLink)
        .where(
            col(AuthorLink.digest) == token_digest,
            col(AuthorLink.used_at).is_(None),
            col(AuthorLink.expires_at) > to_milliseconds(now),
        )
        .values(used_at=to_milliseconds(now))
        .returning(col(AuthorLink.id))
    )
    return link_id is not None


def insert_author_session(db: Session, token_digest: str, device: str, now: dt.datetime) -> int:
    created_at = to_milliseconds(now)
    row = AuthorSession(
        digest=token_digest, device=device, created_at=created_at, last_used=created_at
    )
    db.add(row)
    db.flush()
    session_id = row.id or 0
    record_audit_entry(db, AuditRecord(now, session_id, "session began", device))
    return session_id


def find_author_session(db: Session, token_digest: str, now: dt.datetime) -> SignedInAuthor | None:
    """Return the session of a cookie; None if it is revoked, expired or unknown."""
    values = {"wanted": token_digest, "since": to_milliseconds(now - SESSION_LIFETIME)}
    row = db.connection().execute(_FIND_BY_DIGEST, values).first()
    return SignedInAuthor(row[0] or 0, from_milliseconds(row[1])) if row else None


def renew_author_session(db: Session, session_id: int, now: dt.datetime) -> None:
    db.execute(
        update(AuthorSession)
        .where(col(AuthorSession.id) == session_id)
        .values(last_used=to_milliseconds(now))
    )


def list_author_sessions(db: Session, now: dt.datetime) -> list[AuthorSessionRow]:
    """Return the valid sessions, oldest first."""
    rows = db.execute(
        select(
            col(AuthorSession.id),
            col(AuthorSession.device),
            col(AuthorSession.created_at),
            col(AuthorSession.last_used),
        )
        .where(*_active_session_conditions(now))
        .order_by(col(AuthorSession.id))
    )
    return [
        AuthorSessionRow(
            session_id, device, from_milliseconds(created), from_milliseconds(last_used)
        )
        for session_id, device, created, last_used in rows
    ]


def revoke_author_sessions(
    db: Session, session_ids: Sequence[int], revoking_session_id: int, now: dt.datetime
) -> list[int]:
    """End sessions, and log who ended them; returns the ids of those that were valid."""
    revoked_ids = db.scalars(
        update(AuthorSession)
        .where(col(AuthorSession.id).in_(session_ids), *_active_session_conditions(now))
        .values(revoked_at=to_milliseconds(now))
        .returning(col(AuthorSession.id))
    ).all()
    for session_id in revoked_ids:
        record_audit_entry(
            db, AuditRecord(now, revoking_session_id, "session revoked", f"session {session_id}")
        )
    return [int(session_id) for session_id in revoked_ids if session_id is not None]


def record_audit_entry(db: Session, record: AuditRecord) -> None:
    """Add an audit log entry. It must not contain answers, names or secrets."""
    db.add(
        AuditEntry(
            at=to_milliseconds(record.logged_at),
            session=record.author_session_id,
            action=record.action,
            subject=record.subject,
        )
    )


def list_audit_records(db: Session, limit: int) -> list[AuditRecord]:
    """Return the latest entries of the audit log, newest first."""
    rows = db.execute(
        select(
            col(AuditEntry.at),
            col(AuditEntry.session),
            col(AuditEntry.action),
            col(AuditEntry.subject),
        )
        .order_by(col(AuditEntry.id).desc())
        .limit(limit)
    )
    return [
        AuditRecord(from_milliseconds(at), session_id, action, subject)
        for at, session_id, action, subject in rows
    ]


def _active_session_conditions(now: dt.datetime) -> tuple[ColumnElement[bool], ...]:
    oldest_use = to_milliseconds(now - SESSION_LIFETIME)
    return (col(AuthorSession.revoked_at).is_(None), col(AuthorSession.last_used) > oldest_use)
