"""Mock exams and their answers."""

from sqlalchemy import BigInteger, Column, Index, Text, UniqueConstraint
from sqlmodel import Field, SQLModel

from app.db.tables.columns import time_column


class Sitting(SQLModel, table=True):
    """A mock exam being sat or finished. `paper` is its drawn questions as JSON.

    The server owns `deadline_at`; `closed_by` is learner or time. Times are
    milliseconds; `factor` stretches the minutes of learners who need more.
    """

    __table_args__ = (Index("ix_sitting_learner", "learner_id", "started_at"),)

    id: int | None = Field(default=None, primary_key=True)
    learner_id: int = Field(foreign_key="learner.id", ondelete="CASCADE")
    token: str = Field(max_length=64, unique=True)
    exam: str = Field(max_length=80)
    seed: int = Field(sa_column=Column(BigInteger, nullable=False))
    paper: str = Field(sa_column=Column(Text, nullable=False))
    factor: float = 1.0
    target: int | None = None
    started_at: int = Field(sa_column=time_column())
    deadline_at: int = Field(sa_column=time_column())
    closed_at: int | None = Field(default=None, sa_column=time_column(nullable=True))
    closed_by: str = Field(default="", max_length=8)


class SittingAnswer(SQLModel, table=True):
    """The newest state of one question of a sitting, saved at every change.

    `first` is the first answer that was entered, in JSON; empty without one, and for
    what was answered before it was kept.
    """

    __tablename__ = "sitting_answer"
    __table_args__ = (UniqueConstraint("sitting_id", "number"),)

    id: int | None = Field(default=None, primary_key=True)
    sitting_id: int = Field(foreign_key="sitting.id", ondelete="CASCADE")
    number: int
    raw: str = Field(default="{}", sa_column=Column(Text, nullable=False))
    first: str = Field(default="", sa_column=Column(Text, nullable=False, server_default=""))
    flagged: bool = False
    struck: str = Field(default="[]", sa_column=Column(Text, nullable=False))
    milliseconds: int = 0
    at: int = Field(sa_column=time_column())
