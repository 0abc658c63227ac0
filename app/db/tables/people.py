"""Learners, their browsers, and what lets others in."""

import secrets

from sqlalchemy import Index
from sqlmodel import Field, SQLModel

from app.db.tables.columns import NEVER_REUSED, time_column
from app.scheduling.retention import RETENTION


def new_person() -> str:
    """A word for somebody who has no row yet."""
    return secrets.token_urlsafe(24)


class Learner(SQLModel, table=True):
    """Who studies a course. `key` is a word of theirs that stays, and lets nobody in.

    What is drawn for a learner (seeds, the order of choices) begins with it. A person
    has a row for each course in which something of theirs is kept, all with the same
    word `person`. `course` is empty where the server has one course alone.
    `calendar` shows the study log, `missed` lets missed questions come back as cards.
    `days_off` are weekdays without minutes, as digits: Monday is 0.
    `acts` grows with each thing that is set to a card by hand.
    """

    __table_args__ = (
        Index("ix_learner_person", "person", "course", unique=True),
        NEVER_REUSED,
    )

    id: int | None = Field(default=None, primary_key=True)
    key: str = Field(max_length=43, unique=True)
    person: str = Field(default_factory=new_person, max_length=43)
    course: str = Field(default="", max_length=80, sa_column_kwargs={"server_default": ""})
    name: str = Field(default="", max_length=80)
    zone: str = Field(default="UTC", max_length=64)
    exam_day: str | None = Field(default=None, max_length=10)
    minutes_a_day: int = 30
    retention: float = RETENTION
    target: int | None = None
    calendar: bool = True
    missed: bool = True
    all_minutes: bool = False
    double_last_week: bool = False
    days_off: str = Field(default="", max_length=7)
    created_at: int = Field(sa_column=time_column())
    changes: int = 0
    acts: int = Field(default=0, sa_column_kwargs={"server_default": "0"})


class LearnerSession(SQLModel, table=True):
    """A browser of a learner; `digest` is that of the key in its signed cookie.

    The row stays when the session is revoked: its cookie shall never count as new.
    `last_seen` is the first write of the last study day with one.
    """

    __tablename__ = "learner_session"

    id: int | None = Field(default=None, primary_key=True)
    learner_id: int = Field(foreign_key="learner.id", ondelete="CASCADE", index=True)
    digest: str = Field(max_length=64, unique=True)
    device: str = Field(default="", max_length=40)
    created_at: int = Field(sa_column=time_column())
    last_seen: int = Field(sa_column=time_column())
    revoked_at: int | None = Field(default=None, sa_column=time_column(nullable=True))


class DeviceCode(SQLModel, table=True):
    """A short-lived code that carries a learner to another device."""

    __tablename__ = "device_code"

    id: int | None = Field(default=None, primary_key=True)
    learner_id: int = Field(foreign_key="learner.id", ondelete="CASCADE", index=True)
    digest: str = Field(max_length=64, unique=True)
    expires_at: int = Field(sa_column=time_column())
    used_at: int | None = Field(default=None, sa_column=time_column(nullable=True))


class CalendarFeed(SQLModel, table=True):
    """The address at which a calendar program reads a learner's plan.

    Who knows `key` may read the plan and nothing else; a new one ends the old.
    """

    __tablename__ = "calendar_feed"

    id: int | None = Field(default=None, primary_key=True)
    learner_id: int = Field(foreign_key="learner.id", ondelete="CASCADE", unique=True)
    key: str = Field(max_length=43, unique=True)
    at: int = Field(sa_column=time_column())
