"""What a learner reads, notes, does in a day and was told."""

from sqlalchemy import Column, Text, UniqueConstraint
from sqlmodel import Field, SQLModel

from app.db.tables.columns import time_column


class StudyDay(SQLModel, table=True):
    """What a learner did on a study day: a cache that the two logs can rebuild.

    `answers` and `reviews` are those that stand. Of the reviews, `asked` met a card
    past its learning steps, of which `recalled` were graded above “again” where the
    chances computed before add up to `expected`. `milliseconds` is time on both.
    """

    __tablename__ = "study_day"
    __table_args__ = (UniqueConstraint("learner_id", "day"),)

    id: int | None = Field(default=None, primary_key=True)
    learner_id: int = Field(foreign_key="learner.id", ondelete="CASCADE")
    day: str = Field(max_length=10)
    answers: int = 0
    reviews: int = 0
    asked: int = 0
    recalled: int = 0
    expected: float = 0.0
    milliseconds: int = 0


class Prediction(SQLModel, table=True):
    """What a learner was told on a study day about their score in an exam.

    The first of the day stays, so that what came of it can be compared later.
    `expected`, `low` and `high` are right answers of `questions`; `chance` is that of
    the `target` (percent), both empty without one; `rule` names the computation.
    """

    __table_args__ = (UniqueConstraint("learner_id", "exam", "day"),)

    id: int | None = Field(default=None, primary_key=True)
    learner_id: int = Field(foreign_key="learner.id", ondelete="CASCADE")
    exam: str = Field(max_length=80)
    day: str = Field(max_length=10)
    rule: str = Field(max_length=16)
    questions: int
    answers: int
    expected: float
    low: int
    high: int
    target: int | None = None
    chance: float | None = None
    at: int = Field(sa_column=time_column())


class SectionRead(SQLModel, table=True):
    """How far a learner got on a page, and when last."""

    __tablename__ = "reading"

    __table_args__ = (UniqueConstraint("learner_id", "topic", "section"),)

    id: int | None = Field(default=None, primary_key=True)
    learner_id: int = Field(foreign_key="learner.id", ondelete="CASCADE")
    topic: str = Field(max_length=80)
    section: str = Field(max_length=120)
    at: int = Field(sa_column=time_column())


class Note(SQLModel, table=True):
    """What a learner wrote beside a section, or that they marked it to come back."""

    __table_args__ = (UniqueConstraint("learner_id", "topic", "section"),)

    id: int | None = Field(default=None, primary_key=True)
    learner_id: int = Field(foreign_key="learner.id", ondelete="CASCADE")
    topic: str = Field(max_length=80)
    section: str = Field(max_length=120)
    words: str = Field(default="", sa_column=Column(Text, nullable=False))
    marked: bool = False
    at: int = Field(sa_column=time_column())
