"""Every SQLModel table.

Attempts, regrades and reviews are logs: rows are only ever added. Whatever can be
derived from them (memory, mastery, statistics) is a cache that may be thrown away.
Times are UTC in milliseconds since 1970, study days are ISO dates in the learner's
zone. Items (questions, cards, topics) are named by the ids of the content files.

A regrade never rewrites an attempt: it stands beside it.
"""

import secrets
from collections.abc import Mapping

from sqlalchemy import BigInteger, Column, Index, MetaData, String, Table, Text, UniqueConstraint
from sqlmodel import Field, SQLModel

from app.clock import RETENTION

SQLModel.metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

NEVER_REUSED = {"sqlite_autoincrement": True}
"""For a table whose rows are named by number to others than their owner.

Caches of a process, commands and the author's bench hold such numbers. SQLite would
give the highest one again after its row was erased, and somebody else would be met
under it. Rows of all other tables are looked up together with their learner.
"""


def time_column(*, nullable: bool = False) -> Column[int]:
    """Milliseconds since 1970 in UTC."""
    return Column(BigInteger, nullable=nullable)


def word_column(longest: int) -> Column[str]:
    """A word that rows have which were written before there was the column."""
    return Column(String(longest), nullable=False, server_default="")


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


class Review(SQLModel, table=True):
    """One grade given to a card, an act on it, or (`voids` set) the undoing of one.

    `rating` is 1 again, 2 hard, 3 good, 4 easy; 0 in all other rows. `retention`
    is the recall that the learner wanted then, so a replay needs nothing else;
    `recall` the chance of knowing the card that was computed before the answer, none
    for a card in its (re)learning steps. `act` is bury, due (both with the study day
    `until_day`) or forget; undo in a row that voids one.
    """

    __table_args__ = (
        Index("ix_review_learner_card", "learner_id", "card", "at"),
        Index("ix_review_learner_id", "learner_id", "id"),
    )

    id: int | None = Field(default=None, primary_key=True)
    learner_id: int = Field(foreign_key="learner.id", ondelete="CASCADE")
    token: str = Field(max_length=64, unique=True)
    card: str = Field(max_length=120)
    rating: int
    voids: int | None = Field(default=None, foreign_key="review.id", index=True)
    retention: float = RETENTION
    recall: float | None = None
    milliseconds: int | None = None
    study_day: str = Field(max_length=10)
    at: int = Field(sa_column=time_column())
    act: str = Field(default="", sa_column=word_column(8))
    until_day: str | None = Field(default=None, max_length=10)


class Suspension(SQLModel, table=True):
    """A card that a learner put aside; the row goes when it is taken up again."""

    __table_args__ = (UniqueConstraint("learner_id", "card"),)

    id: int | None = Field(default=None, primary_key=True)
    learner_id: int = Field(foreign_key="learner.id", ondelete="CASCADE")
    card: str = Field(max_length=120)
    at: int = Field(sa_column=time_column())


_OF_A_DAY = ("suspended", "state", "note")


class CardStateRow(SQLModel, table=True):
    """What the reviews of one card amount to: a cache that replay can rebuild.

    `due_day` is a study day; `due_at` the moment while in (re)learning steps. `note`
    is shared by a card and its reverse; `turns` counts all rows of the log about the
    card, voided ones and undoings included; `first_day` and `last_day` are the study
    days of its reviews. A row in state new is a card put aside before
    any review, or one that was added (see AddedCard) and is first asked on `due_day`.
    `set_day` is a study day that was set by hand: until then the card is not asked,
    whatever a plan would gain.
    """

    __tablename__ = "memory"

    __table_args__ = (
        UniqueConstraint("learner_id", "card"),
        # With what else is asked of a day's cards, so that no row is looked up.
        Index("ix_memory_learner_due", "learner_id", "due_day", *_OF_A_DAY, "due_at"),
        Index("ix_memory_learner_last", "learner_id", "last_day", *_OF_A_DAY),
        Index("ix_memory_learner_topic", "learner_id", "topic"),
    )

    id: int | None = Field(default=None, primary_key=True)
    learner_id: int = Field(foreign_key="learner.id", ondelete="CASCADE")
    card: str = Field(max_length=120)
    note: str = Field(max_length=120)
    topic: str = Field(max_length=80)
    state: str = Field(max_length=12)
    step: int | None = None
    stability: float | None = None
    difficulty: float | None = None
    due_day: str = Field(max_length=10)
    due_at: int = Field(sa_column=time_column())
    first_day: str = Field(default="", max_length=10)
    last_day: str = Field(default="", max_length=10)
    last_at: int | None = Field(default=None, sa_column=time_column(nullable=True))
    reviews: int = 0
    lapses: int = 0
    turns: int = 0
    suspended: bool = False
    set_day: str = Field(default="", sa_column=word_column(10))


class AddedCard(SQLModel, table=True):
    """A card that is no part of the course's decks and that a learner studies.

    `card` is q:ID for a question that was missed (`seed` chose its numbers and the
    order of its choices), term:ID for a term of the glossary, own:HASH for a card of
    the learner's own. `declined` keeps it away although there was reason to add it.
    """

    __tablename__ = "added_card"
    __table_args__ = (UniqueConstraint("learner_id", "card"),)

    id: int | None = Field(default=None, primary_key=True)
    learner_id: int = Field(foreign_key="learner.id", ondelete="CASCADE")
    card: str = Field(max_length=120)
    seed: int | None = Field(default=None, sa_column=Column(BigInteger, nullable=True))
    declined: bool = False
    at: int = Field(sa_column=time_column())


class OwnCard(SQLModel, table=True):
    """A card that a learner wrote or brought along.

    `front` and `back` are cleaned HTML, `source` what was typed for them, in JSON.
    One from an Anki note keeps its GUID, its ordinal and the tags of the note.
    """

    __tablename__ = "own_card"
    __table_args__ = (UniqueConstraint("learner_id", "card"),)

    id: int | None = Field(default=None, primary_key=True)
    learner_id: int = Field(foreign_key="learner.id", ondelete="CASCADE")
    card: str = Field(max_length=120)
    deck: str = Field(default="", max_length=120)
    front: str = Field(sa_column=Column(Text, nullable=False))
    back: str = Field(sa_column=Column(Text, nullable=False))
    source: str = Field(default="", sa_column=Column(Text, nullable=False, server_default=""))
    at: int = Field(sa_column=time_column())
    guid: str = Field(default="", sa_column=word_column(100))
    ordinal: int = Field(default=0, sa_column_kwargs={"server_default": "0"})
    tags: str = Field(default="", sa_column=Column(Text, nullable=False, server_default=""))


class OwnPicture(SQLModel, table=True):
    """A picture on cards of a learner's own, in base64.

    `name` is its digest and its ending.
    """

    __tablename__ = "own_picture"
    __table_args__ = (UniqueConstraint("learner_id", "name"),)

    id: int | None = Field(default=None, primary_key=True)
    learner_id: int = Field(foreign_key="learner.id", ondelete="CASCADE")
    name: str = Field(max_length=80)
    content: str = Field(sa_column=Column(Text, nullable=False))
    at: int = Field(sa_column=time_column())


class CardImport(SQLModel, table=True):
    """The last file of cards that a learner imported, and how far it has come.

    `state` is running, done, cancelled, stopped (with the server), full or failed. Of
    `cards` in the file `seen` were written; `refused` says what was left out, as JSON.
    """

    __tablename__ = "card_import"

    id: int | None = Field(default=None, primary_key=True)
    learner_id: int = Field(foreign_key="learner.id", ondelete="CASCADE", unique=True)
    file: str = Field(default="", max_length=80)
    state: str = Field(default="running", max_length=10)
    cards: int = 0
    seen: int = 0
    new: int = 0
    changed: int = 0
    same: int = 0
    grades: int = 0
    media: int = 0
    refused: str = Field(default="{}", sa_column=Column(Text, nullable=False))
    began_at: int = Field(sa_column=time_column())
    at: int = Field(sa_column=time_column())


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


TABLES: Mapping[str, Table] = SQLModel.metadata.tables
"""Every table by its name; complete, since all of them are imported above."""
