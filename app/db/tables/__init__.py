"""Every table. Rows are dumb: rules live on values, SQL lives in the stores.

Attempts, regrades and reviews are logs: rows are only ever added. Whatever can be
derived from them (memory, mastery, statistics) is a cache that may be thrown away.
Times are UTC in milliseconds since 1970, study days are ISO dates in the learner's
zone. Items (questions, cards, topics) are named by the ids of the content files.
"""

from collections.abc import Mapping

from sqlalchemy import Table
from sqlmodel import SQLModel

from app.db.tables.attempts import (
    Attempt,
    ItemReport,
    ItemRevision,
    PracticeRun,
    QuestionFlag,
    Regrade,
)
from app.db.tables.authors import AuditEntry, AuthorLink, AuthorSession
from app.db.tables.cards import (
    AddedCard,
    CardImport,
    CardStateRow,
    OwnCard,
    OwnPicture,
    Review,
    Suspension,
)
from app.db.tables.exams import Sitting, SittingAnswer
from app.db.tables.people import CalendarFeed, DeviceCode, Learner, LearnerSession
from app.db.tables.study import Note, Prediction, SectionRead, StudyDay

TABLES: Mapping[str, Table] = SQLModel.metadata.tables
"""Every table by its name; complete, since all of them are imported above."""
