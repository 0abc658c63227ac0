"""Cards: the log of grades, what it amounts to, and cards that were added."""

from sqlalchemy import BigInteger, Column, Index, Text, UniqueConstraint
from sqlmodel import Field, SQLModel

from app.db.tables.columns import time_column, word_column
from app.scheduling.retention import RETENTION


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
