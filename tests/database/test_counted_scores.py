"""What counts of an attempt that was graded again is read in one place."""

import re
from pathlib import Path

from sqlalchemy import select
from sqlmodel import Session

from app.database.engine import ATTEMPT, GRADED_ATTEMPTS, REVISION, SCORE
from app.database.tables import Attempt, Learner, Regrade
from tests.database.test_migrations import an_attempt

APP = Path(__file__).resolve().parents[2] / "app"


def test_whoever_counts_a_score_asks_for_the_one_that_counts() -> None:
    direct = re.compile(r"\b_?(?:Attempt|ATTEMPT)\.(?:c\.)?(?:score|revision)\b")
    readers = {
        str(path.relative_to(APP)) for path in APP.rglob("*.py") if direct.search(path.read_text())
    }

    # The report of a closed exam shows both.
    assert readers == {"database/engine.py", "exams/store.py"}


def test_the_regrade_that_none_follows_counts(session: Session) -> None:
    learner = Learner(key="ada", created_at=0)
    session.add(learner)
    session.flush()
    attempts = [an_attempt(learner.id or 0) for _ in range(3)]
    for number, attempt in enumerate(attempts):
        attempt.token = str(number)
    session.add_all(attempts)
    session.flush()
    last = 0
    for revision, score in (("r2", 0.0), ("r3", 0.5), ("r2", 0.25)):
        last = follow(session, attempts[0], last, revision, score)
    follow(session, attempts[1], 0, "r2", 0.0)

    rows = session.execute(
        select(REVISION, SCORE).select_from(GRADED_ATTEMPTS).order_by(ATTEMPT.c.id)
    )

    assert [tuple(row) for row in rows] == [("r2", 0.25), ("r2", 0.0), ("r", 1.0)]


def follow(session: Session, attempt: Attempt, after: int, revision: str, score: float) -> int:
    row = Regrade(
        attempt_id=attempt.id,
        learner_id=attempt.learner_id,
        after=after,
        revision=revision,
        score=score,
        at=0,
    )
    session.add(row)
    session.flush()
    return row.id or 0
