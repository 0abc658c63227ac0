"""A database full of learners, written straight into its tables."""

import datetime as dt
import random
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, Engine, func, insert, select
from sqlmodel import SQLModel, col

from app.content.course import Course
from app.database.tables import (
    Attempt,
    CardStateRow,
    Learner,
    Review,
    SectionRead,
    StudyDayActivity,
)
from tests.progress.past import Past, answers, readings, remember

Row = dict[str, Any]
TEMPLATES = 20  # pasts that are computed; the learners share them
_AT_ONCE = 100  # learners whose rows are written together


def fill(engine: Engine, course: Course, keys: list[str], past: Past) -> None:
    """Give every key a learner with such a past, made of a few that were computed."""
    now = dt.datetime.now(dt.UTC)
    pasts = [list(_past(course, past, now, n)) for n in range(TEMPLATES)]
    exam = (now + dt.timedelta(days=24)).date().isoformat()
    learners = [{"key": key, "created_at": 1, "exam_day": exam, "target": 75} for key in keys]
    with engine.connect().execution_options(writes=True) as connection:
        connection.execute(insert(Learner), learners)
        numbers = connection.scalars(select(col(Learner.id)).order_by(col(Learner.id))).all()
        for start in range(0, len(numbers), _AT_ONCE):
            _copy(connection, pasts, numbers[start : start + _AT_ONCE])
        connection.commit()
        if engine.dialect.name != "sqlite":
            connection.exec_driver_sql("ANALYZE")
            connection.commit()


def counts(engine: Engine) -> dict[str, int]:
    """How many rows there are."""
    tables = {"learners": Learner, "reviews": Review, "answers": Attempt}
    with engine.connect() as connection:
        return {
            name: connection.scalar(select(func.count()).select_from(table)) or 0
            for name, table in tables.items()
        }


def _past(
    course: Course, past: Past, now: dt.datetime, seed: int
) -> Iterator[tuple[type[SQLModel], list[Row]]]:
    """The rows of one learner by table."""
    rng = random.Random(seed)
    memories, log = remember(course, past, now, rng)
    given = list(answers(course, past, now, rng))
    yield CardStateRow, memories
    yield Review, log
    yield Attempt, given
    yield SectionRead, list(readings(course, past, now))
    days: dict[str, Row] = {}
    for row in (*log, *given):
        day = row["study_day"]
        sums = days.setdefault(day, {"answers": 0, "reviews": 0, "milliseconds": 0})
        sums["answers" if "item" in row else "reviews"] += 1
        sums["milliseconds"] += row["milliseconds"]
    yield StudyDayActivity, [{"day": day, **sums} for day, sums in days.items()]


def _copy(connection: Connection, pasts: list[Any], numbers: Sequence[Any]) -> None:
    rows: dict[type[SQLModel], list[Row]] = {}
    for number in numbers:
        for table, own in pasts[number % TEMPLATES]:
            rows.setdefault(table, []).extend(_of(number, row) for row in own)
    for table, whole in rows.items():
        connection.execute(insert(table), whole)


def _of(number: int, row: Row) -> Row:
    if "token" in row:
        row = {**row, "token": f"{number}.{row['token']}"[:64]}
    return {**row, "learner_id": number}
