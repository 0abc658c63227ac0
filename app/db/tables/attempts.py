"""Questions: attempts (the log of answers), regrades, wordings, runs, flags, reports.

A regrade never rewrites an attempt: it stands beside it.
"""

from sqlalchemy import BigInteger, Column, Index, Text, UniqueConstraint
from sqlmodel import Field, SQLModel

from app.db.tables.columns import NEVER_REUSED, time_column


class ItemRevision(SQLModel, table=True):
    """A wording of an item that somebody answered; `body` is its parsed JSON."""

    __tablename__ = "item_revision"
    __table_args__ = (UniqueConstraint("item", "revision"),)

    id: int | None = Field(default=None, primary_key=True)
    item: str = Field(max_length=120)
    revision: str = Field(max_length=64)
    body: str = Field(sa_column=Column(Text, nullable=False))
    first_seen: int = Field(sa_column=time_column())


class PracticeRun(SQLModel, table=True):
    """A set of questions that a learner works through; `items` is a JSON list of ids.

    `mode` is how they were chosen and `scope` from where (a topic, an objective, the
    run whose missed ones are tried again, or empty).
    """

    __tablename__ = "practice_run"

    id: int | None = Field(default=None, primary_key=True)
    learner_id: int = Field(foreign_key="learner.id", ondelete="CASCADE", index=True)
    token: str = Field(max_length=64, unique=True)
    mode: str = Field(max_length=16)
    scope: str = Field(default="", max_length=120)
    items: str = Field(sa_column=Column(Text, nullable=False))
    at: int = Field(sa_column=time_column())


class ItemReport(SQLModel, table=True):
    """What a learner says is wrong with an item, for the author's bench."""

    __tablename__ = "item_report"
    __table_args__ = (Index("ix_item_report_item", "item", "at"), NEVER_REUSED)

    id: int | None = Field(default=None, primary_key=True)
    learner_id: int = Field(foreign_key="learner.id", ondelete="CASCADE", index=True)
    token: str = Field(max_length=64, unique=True)
    item: str = Field(max_length=120)
    revision: str = Field(max_length=64)
    seed: int | None = Field(default=None, sa_column=Column(BigInteger, nullable=True))
    words: str = Field(sa_column=Column(Text, nullable=False))
    at: int = Field(sa_column=time_column())
    settled_at: int | None = Field(default=None, sa_column=time_column(nullable=True))


class Attempt(SQLModel, table=True):
    """One answer to a question. `token` makes a repeated request harmless.

    Practice writes it when it is given, a mock exam when it is closed.
    `context` is page, quiz, practice, placement or exam; `raw` what was sent (nothing
    where a learner said that they do not know), `parsed` what was understood, both
    JSON; `score` 0..1; `certainty` 1..3 or none.
    """

    __table_args__ = (
        Index("ix_attempt_learner_item", "learner_id", "item", "at"),
        Index("ix_attempt_learner_id", "learner_id", "id"),
        Index("ix_attempt_item", "item", "revision"),
    )

    id: int | None = Field(default=None, primary_key=True)
    learner_id: int = Field(foreign_key="learner.id", ondelete="CASCADE")
    token: str = Field(max_length=64, unique=True)
    item: str = Field(max_length=120)
    revision: str = Field(max_length=64)
    topic: str = Field(max_length=80)
    seed: int = Field(sa_column=Column(BigInteger, nullable=False))
    context: str = Field(max_length=16)
    sitting_id: int | None = Field(default=None, index=True)
    run_id: int | None = Field(
        default=None, foreign_key="practice_run.id", ondelete="SET NULL", index=True
    )
    raw: str = Field(sa_column=Column(Text, nullable=False))
    parsed: str = Field(sa_column=Column(Text, nullable=False))
    score: float
    first: bool
    certainty: int | None = None
    hints: int = 0
    milliseconds: int | None = None
    study_day: str = Field(max_length=10)
    at: int = Field(sa_column=time_column())


class Regrade(SQLModel, table=True):
    """An attempt graded again, after the key of its question was mended.

    The attempt stays as it was written. `after` is the id of the regrade that this one
    follows, 0 for the first: so two who grade again at once write one row, and the row
    that none follows is the one that counts. `revision` is the wording whose key gave
    the `score`.
    """

    __table_args__ = (
        UniqueConstraint("attempt_id", "after"),
        Index("ix_regrade_learner_id", "learner_id", "id"),
    )

    id: int | None = Field(default=None, primary_key=True)
    attempt_id: int = Field(foreign_key="attempt.id", ondelete="CASCADE")
    learner_id: int = Field(foreign_key="learner.id", ondelete="CASCADE")
    after: int
    revision: str = Field(max_length=64)
    score: float
    at: int = Field(sa_column=time_column())


class QuestionFlag(SQLModel, table=True):
    """A question that a learner flagged; the row goes when the flag is taken away."""

    __tablename__ = "question_flag"
    __table_args__ = (UniqueConstraint("learner_id", "item"),)

    id: int | None = Field(default=None, primary_key=True)
    learner_id: int = Field(foreign_key="learner.id", ondelete="CASCADE")
    item: str = Field(max_length=120)
    at: int = Field(sa_column=time_column())
