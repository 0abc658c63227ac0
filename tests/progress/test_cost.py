"""What the pages ask of the database: as much for a veteran as for a newcomer."""

import re
from collections.abc import Callable, Iterator

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from itsdangerous import Signer
from sqlalchemy import event, text

from app.content.course import Course
from app.web.visitor import SESSION_COOKIE
from tests.conftest import SECRET, Clock, visit
from tests.progress.past import Past, live

PAST = {
    "newcomer": Past(cards=4, reviews=4, answers=4, days=2),
    "veteran": Past(cards=4, reviews=2000, answers=1000, days=90),
}


@pytest.fixture
def asked(app: FastAPI) -> Iterator[list[str]]:
    """Every question to the database."""
    statements: list[str] = []

    def note(_connection, _cursor, statement, *_rest) -> None:
        if statement.startswith(("SELECT", "WITH")):
            statements.append(statement)

    event.listen(app.state.engine, "before_cursor_execute", note)
    yield statements
    event.remove(app.state.engine, "before_cursor_execute", note)


_VALUE = r"(?:\?|%\(\w+\)s(?:::\w+)?)"  # of SQLite, of PostgreSQL
_SEVERAL = re.compile(rf"IN \({_VALUE}(?:, {_VALUE})*\)")


@pytest.fixture
def count(
    app: FastAPI, course: Course, clock: Clock, asked: list[str]
) -> Callable[[str, str], list[str]]:
    """What a page asks when it is made anew for somebody who was there before."""
    clients: dict[str, TestClient] = {}
    for name, past in PAST.items():
        key = name * 5
        live(app.state.engine, course, key, past, clock())
        clients[name] = visit(app)
        signed = Signer(SECRET, salt="learner").sign(key).decode()
        clients[name].cookies.set(SESSION_COOKIE, signed)

    def questions(name: str, address: str) -> list[str]:
        for _ in range(2):
            with app.state.engine.begin() as connection:
                connection.execute(text("UPDATE learner SET changes = changes + 1"))
            asked.clear()
            assert clients[name].get(address).status_code == 200
        # One statement for however many cards.
        return [_SEVERAL.sub("IN (…)", statement) for statement in asked]

    return questions


def test_a_page_asks_a_veteran_nothing_more(count, subtests: pytest.Subtests):
    for address in ("/", "/progress", "/flashcards"):
        with subtests.test(address):
            assert count("veteran", address) == count("newcomer", address)


def test_a_page_asks_a_handful_of_questions(count, subtests: pytest.Subtests):
    for address, most in {"/": 12, "/progress": 13, "/flashcards": 8}.items():
        with subtests.test(address):
            questions = count("veteran", address)
            assert 1 <= len(questions) <= most, questions


def test_no_page_reads_more_of_the_log_of_reviews_than_its_end(count):
    for address in ("/", "/progress"):
        rows = [q for q in count("veteran", address) if "FROM review" in q]
        # The first card on the desk: its log is counted where it has no memory.
        whole = [q for q in rows if "coalesce(memory.turns" not in q]
        assert [q for q in whole if "LIMIT" not in q] == []
