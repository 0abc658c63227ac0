"""The author's bench: who may use it, and what was done."""

from sqlmodel import Field, SQLModel

from app.db.tables.columns import time_column


class AuthorLink(SQLModel, table=True):
    """A link that lets a browser onto the author's bench, once and for a short time."""

    __tablename__ = "author_link"

    id: int | None = Field(default=None, primary_key=True)
    digest: str = Field(max_length=64, unique=True)
    created_at: int = Field(sa_column=time_column())
    expires_at: int = Field(sa_column=time_column())
    used_at: int | None = Field(default=None, sa_column=time_column(nullable=True))


class AuthorSession(SQLModel, table=True):
    """A browser that may use the author's bench; `digest` is that of its cookie.

    `last_used` is told to within a day; the session ends a month after it.
    """

    __tablename__ = "author_session"

    id: int | None = Field(default=None, primary_key=True)
    digest: str = Field(max_length=64, unique=True)
    device: str = Field(default="", max_length=40)
    created_at: int = Field(sa_column=time_column())
    last_used: int = Field(sa_column=time_column())
    revoked_at: int | None = Field(default=None, sa_column=time_column(nullable=True))


class AuditEntry(SQLModel, table=True):
    """What an author did: `session` is that of the bench, 0 for the command line."""

    __tablename__ = "audit"

    id: int | None = Field(default=None, primary_key=True)
    at: int = Field(sa_column=time_column())
    session: int = 0
    action: str = Field(max_length=40)
    subject: str = Field(default="", max_length=120)
