"""How many rows of a kind one learner may have, so that nobody fills the disk alone.

What a course bounds needs no quota: notes, pages read, flags, cards put aside and what
is remembered of cards have a row for each section, question or card. Answers and
reviews are logs that are never cut; how fast they grow is limited by client. The log of
one card has a quota, since all of it is replayed when something in it changes.
"""

import dataclasses

from sqlalchemy import ColumnElement, literal, select
from sqlmodel import Session

from app.errors import ConflictError


@dataclasses.dataclass(frozen=True, slots=True)
class Quota:
    """The most rows of a kind, what is said to who wants more, and what to do."""

    most: int
    message: str
    hint: str

    def check(self, count: int) -> None:
        """Raise Conflict where there are more than the quota allows."""
        if count > self.most:
            raise ConflictError(self.message.format(most=self.most), self.hint)


OWN_CARDS = Quota(
    50_000,
    "You have {most:,} cards of your own, the most that are kept for one learner.",
    "Remove a deck at Settings, Cards and Anki, then save again.",
)
OPEN_REPORTS = Quota(
    100,
    "{most:,} of your reports are still open, the most that one learner may have.",
    "Report this when the author has settled some of them.",
)
SITTINGS = Quota(
    1_000,
    "You have sat {most:,} mock exams, the most that are kept for one learner.",
    "Practice without a clock instead. To sit more exams, download your data and "
    "erase it, both in Settings.",
)
SESSIONS = Quota(
    1_000,
    "You have signed in from {most:,} browsers, the most that are kept for one learner.",
    "Go on in a browser that is signed in already.",
)
CARD_LOG = Quota(
    1_000,
    "This card has {most:,} entries in its log, the most that are kept of one card.",
    "Put it aside, or write its words on a new card of your own.",
)
MOST_RUNS = 1_000
"""Practice runs of a learner; older ones go, and their answers stay."""


def check_quota(db: Session, quota: Quota, *rows: ColumnElement[bool]) -> None:
    """Raise Conflict where more rows than the quota allows meet the conditions.

    To be called after the row was inserted: a repeated request that inserts nothing
    is no more than before, and the refusal takes the row back.
    """
    one_more = select(literal(1)).where(*rows).limit(1).offset(quota.most)
    if db.scalar(one_more) is not None:
        quota.check(quota.most + 1)
