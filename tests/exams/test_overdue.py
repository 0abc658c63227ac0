"""The server closes a paper by itself, and a restart changes nothing in that."""

import datetime as dt

from sqlmodel import Session, select

from app.db.tables import Sitting
from app.exams.overdue import close_now
from tests.conftest import Clock
from tests.exams.sitting import begin


def test_an_overdue_paper_is_closed_once_at_its_deadline(
    app, rosa, clock: Clock, session: Session
) -> None:
    begin(rosa)
    later = clock.now + dt.timedelta(days=3)

    assert close_now(app.state.engine, app.state.library, clock.now) == 0
    assert close_now(app.state.engine, app.state.library, later) == 1
    assert close_now(app.state.engine, app.state.library, later) == 0
    row = session.exec(select(Sitting)).one()
    assert (row.closed_by, row.closed_at) == ("time", row.deadline_at)
