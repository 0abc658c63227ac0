"""All database tables, as SQLModel classes.

Attempts, regrades and reviews are logs: rows are only added. Everything derived from
them (card state, mastery, statistics) is a cache that can be rebuilt. Times are UTC in
milliseconds since 1970. Study days are ISO dates in the learner's time zone. Items
(questions, cards, topics) are named by their ids in the content files.

A regrade never changes its attempt; it is a separate row.
"""

import secrets
from collections.abc import Mapping

from sqlalchemy import BigInteger, Index, MetaData, Table, Text, UniqueConstraint, false
from sqlmodel import Field, SQLModel

from app.learner_defaults import DEFAULT_MINUTES_A_DAY, DEFAULT_RETENTION

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
"""Table option for rows whose ids are used outside of queries by learner.

Caches, commands and the author pages hold such ids. SQLite would reuse the highest id
after its row was deleted, and the id would then name another person's row. Rows of all
other tables are looked up together with their learner.
"""
EMPTY_BEFORE: Mapping[str, str] = {"server_default": ""}
"""Options of a text column that is empty in rows written before the column existed."""


class _Row(SQLModel):
    id: int | None = Field(default=None, primary_key=True)


class _RowOfLearner(_Row):
    """A row that belongs to a learner and is erased with them."""

    learner_id: int = Field(foreign_key="learner.id", ondelete="CASCADE")


class ItemRevision(_Row, table=True):
    """A revision of an item that a learner answered. `body` is the parsed item as JSON."""

    __tablename__ = "item_revision"
    __table_args__ = (UniqueConstraint("item", "revision"),)

    item: str = Field(max_length=120)
    revision: str = Field(max_length=64)
    body: str = Field(sa_type=Text)
    first_seen: int = Field(sa_type=BigInteger)


class PracticeRun(_Row, table=True):
    """A practice run. `items` is a JSON list of question ids.

    `mode` is how the questions were selected and `scope` from where: a topic, an
    objective, the run or sitting whose missed questions are repeated, the study day of a list,
    or empty.
    """

    __tablename__ = "practice_run"

    learner_id: int = Field(foreign_key="learner.id", ondelete="CASCADE", index=True)
    token: str = Field(max_length=64, unique=True)
    mode: str = Field(max_length=16)
    scope: str = Field(default="", max_length=120)
    items: str = Field(sa_type=Text)
    at: int = Field(sa_type=BigInteger)


class ItemReport(_Row, table=True):
    """A learner's report about an item, shown on the author pages."""

    __tablename__ = "item_report"
    __table_args__ = (Index("ix_item_report_item", "item", "at"), NEVER_REUSED)

    learner_id: int = Field(foreign_key="learner.id", ondelete="CASCADE", index=True)
    token: str = Field(max_length=64, unique=True)
    item: str = Field(max_length=120)
    revision: str = Field(max_length=64)
    seed: int | None = Field(default=None, sa_type=BigInteger)
    words: str = Field(sa_type=Text)
    at: int = Field(sa_type=BigInteger)
    settled_at: int | None = Field(default=None, sa_type=BigInteger)


class Attempt(_RowOfLearner, table=True):
    """One graded answer to a question. `token` makes a repeated request harmless.

    Practice writes it at once, a mock exam when it is closed. `context` is page, quiz,
    practice, placement or exam. `raw` is the submitted JSON (empty for “I don't know”),
    `parsed` the response read from it. `score` is 0..1, `certainty` 1..3 or None.
    """

    __table_args__ = (
        Index("ix_attempt_learner_item", "learner_id", "item", "at"),
        Index("ix_attempt_learner_id", "learner_id", "id"),
        Index("ix_attempt_item", "item", "revision"),
    )

    token: str = Field(max_length=64, unique=True)
    item: str = Field(max_length=120)
    revision: str = Field(max_length=64)
    topic: str = Field(max_length=80)
    seed: int = Field(sa_type=BigInteger)
    context: str = Field(max_length=16)
    sitting_id: int | None = Field(default=None, index=True)
    run_id: int | None = Field(
        default=None, foreign_key="practice_run.id", ondelete="SET NULL", index=True
    )
    raw: str = Field(sa_type=Text)
    parsed: str = Field(sa_type=Text)
    score: float
    first: bool
    certainty: int | None = None
    hints: int = 0
    milliseconds: int | None = None
    study_day: str = Field(max_length=10)
    at: int = Field(sa_type=BigInteger)


class Regrade(_Row, table=True):
    """A new grade for an attempt, after the key of its question was corrected.

    The attempt itself does not change. `after` is the id of the previous regrade, 0 for
    the first. It is unique per attempt, so two concurrent regrades write one row, and
    the row without a successor is current. `revision` is the question revision whose
    key gave the `score`.
    """

    __table_args__ = (
        UniqueConstraint("attempt_id", "after"),
        Index("ix_regrade_learner_id", "learner_id", "id"),
    )

    attempt_id: int = Field(foreign_key="attempt.id", ondelete="CASCADE")
    learner_id: int = Field(foreign_key="learner.id", ondelete="CASCADE")
    after: int
    revision: str = Field(max_length=64)
    score: float
    at: int = Field(sa_type=BigInteger)


class QuestionFlag(_RowOfLearner, table=True):
    """A question that a learner flagged. Removing the flag deletes the row."""

    __tablename__ = "question_flag"
    __table_args__ = (UniqueConstraint("learner_id", "item"),)

    item: str = Field(max_length=120)
    at: int = Field(sa_type=BigInteger)


class AuthorLink(_Row, table=True):
    """A short-lived, single-use link that opens the author pages in a browser."""

    __tablename__ = "author_link"

    digest: str = Field(max_length=64, unique=True)
    created_at: int = Field(sa_type=BigInteger)
    expires_at: int = Field(sa_type=BigInteger)
    used_at: int | None = Field(default=None, sa_type=BigInteger)


class AuthorSession(_Row, table=True):
    """A browser that may use the author pages for a month after `last_used`, accurate to a day."""

    __tablename__ = "author_session"

    digest: str = Field(max_length=64, unique=True)
    device: str = Field(default="", max_length=40)
    created_at: int = Field(sa_type=BigInteger)
    last_used: int = Field(sa_type=BigInteger)
    revoked_at: int | None = Field(default=None, sa_type=BigInteger)


class AuditEntry(_Row, table=True):
    """Audit log entry of an author's action. `session` is the AuthorSession id, 0 for a command."""

    __tablename__ = "audit"

    at: int = Field(sa_type=BigInteger)
    session: int = 0
    action: str = Field(max_length=40)
    subject: str = Field(default="", max_length=120)


class Review(_RowOfLearner, table=True):
    """One entry of the review log: a rating, a manual edit, or (`voids` set) an undo of one.

    `rating` is 1 again, 2 hard, 3 good, 4 easy; 0 in all other rows. `retention` is the
    learner's desired retention at the time, so that a replay needs nothing else.
    `recall` is the retrievability computed before the answer, None for a card in its
    (re)learning steps. `act` is the manual edit: bury, due (both with the study day
    `until_day`) or forget; it is undo in a row that voids one.
    """

    __table_args__ = (
        Index("ix_review_learner_card", "learner_id", "card", "at"),
        Index("ix_review_learner_id", "learner_id", "id"),
    )

    token: str = Field(max_length=64, unique=True)
    card: str = Field(max_length=120)
    rating: int
    voids: int | None = Field(default=None, foreign_key="review.id", index=True)
    retention: float = DEFAULT_RETENTION
    recall: float | None = None
    milliseconds: int | None = None
    study_day: str = Field(max_length=10)
    at: int = Field(sa_type=BigInteger)
    act: str = Field(default="", max_length=8, sa_column_kwargs=EMPTY_BEFORE)
    until_day: str | None = Field(default=None, max_length=10)


class Suspension(_RowOfLearner, table=True):
    """A suspended card. Unsuspending deletes the row."""

    __table_args__ = (UniqueConstraint("learner_id", "card"),)

    card: str = Field(max_length=120)
    at: int = Field(sa_type=BigInteger)


_OF_A_DAY = ("suspended", "state", "note")


class CardStateRow(_RowOfLearner, table=True):
    """The current state of one card: a cache that replaying the review log can rebuild.

    `due_day` is a study day; `due_at` is the exact time during (re)learning steps.
    `note` is shared by a card and its reverse. `turns` counts all log rows of the card,
    voided ones and undos included. `first_day` and `last_day` are the study days of its
    first and last review. A row in state new is a card suspended before any review, or
    an added card (see AddedCard) that is first due on `due_day`. `set_day` is a due
    date set manually: until then the card is not shown, even if the plan would gain
    from it.
    """

    __tablename__ = "memory"
    __table_args__ = (
        UniqueConstraint("learner_id", "card"),
        # These cover all columns that queries for a day's cards read, so no row is
        # looked up.
        Index("ix_memory_learner_due", "learner_id", "due_day", *_OF_A_DAY, "due_at"),
        Index("ix_memory_learner_last", "learner_id", "last_day", *_OF_A_DAY),
        Index("ix_memory_learner_topic", "learner_id", "topic"),
    )

    card: str = Field(max_length=120)
    note: str = Field(max_length=120)
    topic: str = Field(max_length=80)
    state: str = Field(max_length=12)
    step: int | None = None
    stability: float | None = None
    difficulty: float | None = None
    due_day: str = Field(max_length=10)
    due_at: int = Field(sa_type=BigInteger)
    first_day: str = Field(default="", max_length=10)
    last_day: str = Field(default="", max_length=10)
    last_at: int | None = Field(default=None, sa_type=BigInteger)
    reviews: int = 0
    lapses: int = 0
    turns: int = 0
    suspended: bool = False
    set_day: str = Field(default="", max_length=10, sa_column_kwargs=EMPTY_BEFORE)


class AddedCard(_RowOfLearner, table=True):
    """A card outside of the course's decks that a learner studies.

    `card` is q:ID for a missed question (`seed` fixes its numbers and the order of its
    options), term:ID for a glossary term, own:HASH for the learner's own card.
    `declined` prevents that the card is added automatically again.
    """

    __tablename__ = "added_card"
    __table_args__ = (UniqueConstraint("learner_id", "card"),)

    card: str = Field(max_length=120)
    seed: int | None = Field(default=None, sa_type=BigInteger)
    declined: bool = False
    at: int = Field(sa_type=BigInteger)


class OwnCard(_RowOfLearner, table=True):
    """A card that a learner wrote or imported, or their text of the course card `card`.

    `front` and `back` are sanitized HTML, `source` is what the learner typed, as JSON.
    A card from an Anki note keeps the note's GUID and tags, and its ordinal.
    """

    __tablename__ = "own_card"
    __table_args__ = (UniqueConstraint("learner_id", "card"),)

    card: str = Field(max_length=120)
    deck: str = Field(default="", max_length=120)
    front: str = Field(sa_type=Text)
    back: str = Field(sa_type=Text)
    source: str = Field(default="", sa_type=Text, sa_column_kwargs=EMPTY_BEFORE)
    at: int = Field(sa_type=BigInteger)
    guid: str = Field(default="", max_length=100, sa_column_kwargs=EMPTY_BEFORE)
    ordinal: int = Field(default=0, sa_column_kwargs={"server_default": "0"})
    tags: str = Field(default="", sa_type=Text, sa_column_kwargs=EMPTY_BEFORE)


class OwnPicture(_RowOfLearner, table=True):
    """A picture on a learner's own cards, in base64. `name` is its hash and file extension."""

    __tablename__ = "own_picture"
    __table_args__ = (UniqueConstraint("learner_id", "name"),)

    name: str = Field(max_length=80)
    content: str = Field(sa_type=Text)
    at: int = Field(sa_type=BigInteger)


class CardImport(_Row, table=True):
    """The last card file that a learner imported, and its progress.

    `state` is running, done, cancelled, stopped (with the server), full or failed.
    `seen` of `cards` in the file were processed. `refused` lists skipped items as JSON.
    """

    __tablename__ = "card_import"

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
    refused: str = Field(default="{}", sa_type=Text)
    began_at: int = Field(sa_type=BigInteger)
    at: int = Field(sa_type=BigInteger)


class Sitting(_RowOfLearner, table=True):
    """A mock exam in progress or finished. `paper` is the list of drawn questions as JSON.

    The server enforces `deadline_at`. `closed_by` is learner or time. `factor`
    multiplies the time limit for learners who need more time.
    """

    __table_args__ = (Index("ix_sitting_learner", "learner_id", "started_at"),)

    token: str = Field(max_length=64, unique=True)
    exam: str = Field(max_length=80)
    seed: int = Field(sa_type=BigInteger)
    paper: str = Field(sa_type=Text)
    factor: float = 1.0
    target: int | None = None
    started_at: int = Field(sa_type=BigInteger)
    deadline_at: int = Field(sa_type=BigInteger)
    closed_at: int | None = Field(default=None, sa_type=BigInteger)
    closed_by: str = Field(default="", max_length=8)


class SittingAnswer(_Row, table=True):
    """The saved answer to one question of a sitting, updated at every change.

    `first` is the first answer entered, as JSON; empty if there is none or if the row
    is older than this column.
    """

    __tablename__ = "sitting_answer"
    __table_args__ = (UniqueConstraint("sitting_id", "number"),)

    sitting_id: int = Field(foreign_key="sitting.id", ondelete="CASCADE")
    number: int
    raw: str = Field(default="{}", sa_type=Text)
    first: str = Field(default="", sa_type=Text, sa_column_kwargs=EMPTY_BEFORE)
    flagged: bool = False
    struck: str = Field(default="[]", sa_type=Text)
    milliseconds: int = 0
    at: int = Field(sa_type=BigInteger)


class Learner(_Row, table=True):
    """A learner in one course. `key` is a permanent random id that seeds draws, no credential.

    A person has one row per course with saved data, all with the same `person`.
    `course` is empty if the server has a single course. `calendar` shows the study log;
    `missed` turns missed questions into cards. `days_off` are weekdays without study
    time, as digits (Monday is 0). `acts` counts manual edits of cards. `plan_begun` is the
    study day on which the exam day was set, `mock_days` the dates of the mock exams, with
    spaces between, `card_amount` fewer, normal or more new cards, and `page_route` whether the list
    has short or full pages, or auto. `reminder_hour` is when
    the calendar feed reminds, None for never. `exam_result` is passed or failed once the
    learner has said how the exam of `exam_day` went, `past_exams` the earlier ones, as
    2026-10-14:failed with spaces between. `mail` is the address for the weekly summary,
    `mail_key` leads to where it is confirmed and removed, `mailed` is the day of the last mail.
    """

    __table_args__ = (Index("ix_learner_person", "person", "course", unique=True), NEVER_REUSED)

    key: str = Field(max_length=43, unique=True)
    person: str = Field(default_factory=lambda: secrets.token_urlsafe(24), max_length=43)
    course: str = Field(default="", max_length=80, sa_column_kwargs=EMPTY_BEFORE)
    name: str = Field(default="", max_length=80)
    zone: str = Field(default="UTC", max_length=64)
    exam_day: str | None = Field(default=None, max_length=10)
    minutes_a_day: int = DEFAULT_MINUTES_A_DAY
    retention: float = DEFAULT_RETENTION
    target: int | None = None
    calendar: bool = True
    missed: bool = True
    double_last_week: bool = False
    days_off: str = Field(default="", max_length=7)
    plan_begun: str | None = Field(default=None, max_length=10)
    mock_days: str = Field(default="", sa_type=Text, sa_column_kwargs=EMPTY_BEFORE)
    card_amount: str = Field(
        default="normal", max_length=8, sa_column_kwargs={"server_default": "normal"}
    )
    page_route: str = Field(
        default="auto", max_length=8, sa_column_kwargs={"server_default": "auto"}
    )
    reminder_hour: int | None = None
    exam_result: str = Field(default="", max_length=8, sa_column_kwargs=EMPTY_BEFORE)
    past_exams: str = Field(default="", sa_type=Text, sa_column_kwargs=EMPTY_BEFORE)
    mail: str = Field(default="", max_length=254, sa_column_kwargs=EMPTY_BEFORE)
    mail_key: str = Field(default="", max_length=43, sa_column_kwargs=EMPTY_BEFORE)
    mail_confirmed: bool = Field(default=False, sa_column_kwargs={"server_default": false()})
    mailed: str = Field(default="", max_length=10, sa_column_kwargs=EMPTY_BEFORE)
    created_at: int = Field(sa_type=BigInteger)
    changes: int = 0
    acts: int = Field(default=0, sa_column_kwargs={"server_default": "0"})


class LearnerSession(_Row, table=True):
    """A browser of a learner. `digest` is the hash of the key in its signed cookie.

    The row remains after the session is revoked, so that its cookie never counts as
    new. `last_seen` is the first write on the last active study day.
    """

    __tablename__ = "learner_session"

    learner_id: int = Field(foreign_key="learner.id", ondelete="CASCADE", index=True)
    digest: str = Field(max_length=64, unique=True)
    device: str = Field(default="", max_length=40)
    created_at: int = Field(sa_type=BigInteger)
    last_seen: int = Field(sa_type=BigInteger)
    revoked_at: int | None = Field(default=None, sa_type=BigInteger)


class DeviceCode(_Row, table=True):
    """A short-lived code that signs a learner in on another device."""

    __tablename__ = "device_code"

    learner_id: int = Field(foreign_key="learner.id", ondelete="CASCADE", index=True)
    digest: str = Field(max_length=64, unique=True)
    expires_at: int = Field(sa_type=BigInteger)
    used_at: int | None = Field(default=None, sa_type=BigInteger)


class CalendarFeed(_Row, table=True):
    """The URL at which a calendar program reads a learner's plan.

    Knowing `key` gives access to the plan and nothing else. A new key replaces the old
    one.
    """

    __tablename__ = "calendar_feed"

    learner_id: int = Field(foreign_key="learner.id", ondelete="CASCADE", unique=True)
    key: str = Field(max_length=43, unique=True)
    at: int = Field(sa_type=BigInteger)


class StudyDayActivity(_RowOfLearner, table=True):
    """A learner's activity on a study day: a cache that the two logs can rebuild.

    `answers` and `reviews` exclude undone ones. `asked` counts reviews of cards past
    their learning steps, `recalled` those of them rated above “again”; `expected` is
    the sum of their retrievabilities before the review. `milliseconds` is the time
    spent on both.
    """

    __tablename__ = "study_day"
    __table_args__ = (UniqueConstraint("learner_id", "day"),)

    day: str = Field(max_length=10)
    answers: int = 0
    reviews: int = 0
    asked: int = 0
    recalled: int = 0
    expected: float = 0.0
    milliseconds: int = 0


class ScorePredictionRow(_RowOfLearner, table=True):
    """The exam score predicted for a learner on a study day.

    Only one of a day is saved, to compare it with later results: that of the morning, or the one
    after a placement test. `expected`, `low` and `high` are correct answers out of `questions`.
    `chance` is the probability of reaching `target` (percent); both are None without a target.
    `rule` names the computation.
    """

    __tablename__ = "prediction"
    __table_args__ = (UniqueConstraint("learner_id", "exam", "day"),)

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
    at: int = Field(sa_type=BigInteger)


class DayListRow(_RowOfLearner, table=True):
    """The list of a study day, and the score estimate it was made from, both as JSON.

    Made at the first request of the day and then kept; `estimate` is empty without an exam.
    """

    __tablename__ = "day_list"
    __table_args__ = (UniqueConstraint("learner_id", "day"),)

    day: str = Field(max_length=10)
    tasks: str = Field(sa_type=Text)
    estimate: str = Field(sa_type=Text)
    at: int = Field(sa_type=BigInteger)


class SectionRead(_RowOfLearner, table=True):
    """A section of a page that a learner has read, and when."""

    __tablename__ = "reading"
    __table_args__ = (UniqueConstraint("learner_id", "topic", "section"),)

    topic: str = Field(max_length=80)
    section: str = Field(max_length=120)
    at: int = Field(sa_type=BigInteger)


class SectionNoteRow(_RowOfLearner, table=True):
    """A learner's note on a section, or a bookmark on it."""

    __tablename__ = "note"
    __table_args__ = (UniqueConstraint("learner_id", "topic", "section"),)

    topic: str = Field(max_length=80)
    section: str = Field(max_length=120)
    words: str = Field(default="", sa_type=Text)
    marked: bool = False
    at: int = Field(sa_type=BigInteger)


TABLES: Mapping[str, Table] = SQLModel.metadata.tables
"""Every table by name. Complete, because all of them are defined above."""
