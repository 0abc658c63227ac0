"""What each study day held: sums that grow with the answers and grades themselves.

Whoever writes to one of the two logs adds to the day in the same transaction. The
sums are a cache: they can be made again from the logs.
"""

import collections
import dataclasses
import functools
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Row, delete, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session

from app.db.tables import TABLES

DAYS = TABLES["study_day"]
ANSWERS = TABLES["attempt"]
GRADES = TABLES["review"]


@dataclasses.dataclass(frozen=True, slots=True)
class DayTotals:
    """The sums of a day or of several, and what an answer or a grade adds to them.

    Of the `reviews`, `asked` met a card past its learning steps for the first time
    that day; `recalled` of them were graded above “again”, where the chances computed
    before add up to `expected`. `milliseconds` is the time taken.
    """

    answers: int = 0
    reviews: int = 0
    asked: int = 0
    recalled: int = 0
    expected: float = 0.0
    milliseconds: int = 0

    def __add__(self, other: "DayTotals") -> "DayTotals":
        mine, others = self.columns(), other.columns()
        return DayTotals(**{name: mine[name] + others[name] for name in mine})

    def __neg__(self) -> "DayTotals":
        return DayTotals(**{name: -value for name, value in self.columns().items()})

    @property
    def work(self) -> int:
        """Answers and reviews."""
        return self.answers + self.reviews

    @property
    def minutes(self) -> float:
        """Time on both, in minutes."""
        return self.milliseconds / 60_000

    def columns(self) -> dict[str, Any]:
        """The sums by the name of their column."""
        return {name: getattr(self, name) for name in self.__slots__}


def work_of_grade(
    rating: int, recall: float | None, milliseconds: int | None, *, again: bool
) -> DayTotals:
    """What a grade adds to its day.

    `recall` is the chance computed before it, none for a card in its steps; `again`
    says that the card was reviewed before on that day, which proves no memory.
    """
    took = milliseconds or 0
    if recall is None or again:
        return DayTotals(reviews=1, milliseconds=took)
    return DayTotals(
        reviews=1,
        asked=1,
        recalled=int(rating > 1),
        expected=recall,
        milliseconds=took,
    )


def add_to_day(db: Session, learner_id: int, day: str, more: DayTotals) -> None:
    """Add to the sums of a study day (ISO date), which may be the first of it."""
    values = {"learner_id": learner_id, "day": day, **more.columns()}
    db.connection().execute(_adding(db.connection().dialect.name), values)


def change_days(
    db: Session, learner_id: int, before: Iterable[Row[Any]], after: Iterable[Row[Any]]
) -> None:
    """Change the sums by what the logs of some cards were, and by what they are now.

    Both are whole logs of the same cards, each in the order of time.
    """
    days = collections.defaultdict[str, DayTotals](DayTotals)
    for day, work in works_of(list(before)):
        days[day] += -work
    for day, work in works_of(list(after)):
        days[day] += work
    for day, work in sorted(days.items()):
        if work != DayTotals():
            add_to_day(db, learner_id, day, work)


def forget_empty_days(db: Session, learner_id: int) -> None:
    """Delete the days of which nothing is left in either log."""
    connection = db.connection()
    held: set[str] = set()
    for log in (ANSWERS, GRADES):
        mine = log.c.learner_id == learner_id
        held |= set(connection.scalars(select(log.c.study_day).where(mine).distinct()))
    mine = DAYS.c.learner_id == learner_id
    days = set(connection.scalars(select(DAYS.c.day).where(mine)))
    for day in sorted(days - held):
        connection.execute(delete(DAYS).where(mine, DAYS.c.day == day))


def works_of(log: Sequence[Row[Any]]) -> Iterable[tuple[str, DayTotals]]:
    """What each grade added to which day; nothing stayed of one that was undone."""
    undone = {row.voids for row in log if row.voids}
    last: dict[str, str] = {}
    for row in log:
        if not row.rating:
            continue
        if row.id in undone:
            yield row.study_day, DayTotals()
            continue
        again = last.get(row.card) == row.study_day
        last[row.card] = row.study_day
        work = work_of_grade(row.rating, row.recall, row.milliseconds, again=again)
        yield row.study_day, work


@functools.cache
def _adding(dialect: str) -> Any:
    make = sqlite.insert if dialect == "sqlite" else postgresql.insert
    statement = make(DAYS)
    new = statement.excluded
    sums = {name: DAYS.c[name] + new[name] for name in DayTotals.__slots__}
    return statement.on_conflict_do_update(
        index_elements=[DAYS.c.learner_id, DAYS.c.day], set_=sums
    )
