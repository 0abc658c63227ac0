"""The server closes a paper by itself, and a restart changes nothing in that."""

import datetime as dt

import pytest
from sqlmodel import Session, select

from app.database.tables import Sitting
from app.exams import sitting
from app.exams.sitting import close_overdue_sittings
from tests.conftest import Clock, visit
from tests.exams.sitting import begin


def test_an_overdue_paper_is_closed_once_at_its_deadline(
    app, rosa, clock: Clock, session: Session
) -> None:
    begin(rosa)
    later = clock.now + dt.timedelta(days=3)

    assert close_overdue_sittings(app.state.engine, app.state.live_course, clock.now) == 0
    assert close_overdue_sittings(app.state.engine, app.state.live_course, later) == 1
    assert close_overdue_sittings(app.state.engine, app.state.live_course, later) == 0
    row = session.exec(select(Sitting)).one()
    assert (row.closed_by, row.closed_at) == ("time", row.deadline_at)


def test_each_overdue_paper_is_closed_in_a_transaction_of_its_own(
    app, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many may end at once, and others who write shall not wait for all of them."""
    for _ in range(3):
        with visit(app) as client:
            begin(client)
    closed_before = []
    close_sitting = sitting.close_and_grade_sitting

    def close(*given):
        with Session(app.state.engine) as other:
            ended = select(Sitting).where(Sitting.closed_by == "time")
            closed_before.append(len(other.exec(ended).all()))
        return close_sitting(*given)

    monkeypatch.setattr("app.exams.sitting.close_and_grade_sitting", close)

    later = clock.now + dt.timedelta(days=3)
    assert close_overdue_sittings(app.state.engine, app.state.live_course, later) == 3
    assert closed_before == [0, 1, 2]
