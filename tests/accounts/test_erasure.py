"""POST /settings/erasure: everything of one learner, at once and entirely."""

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import func, inspect, select
from sqlmodel import Session

from app.accounts.learner_store import (
    count_records_of_person_by_table,
    list_tables_with_learner_rows,
)
from app.database.tables import Learner
from tests.conftest import visit

# Wordings of the course, and what authors do: they belong to no learner.
NOTHING = {"item_revision", "author_link", "author_session", "audit"}


def sizes(session: Session, tables) -> dict[str, int]:
    session.rollback()
    return {t.name: session.scalar(select(func.count()).select_from(t)) for t in tables}


def erase(client: TestClient, word: str = "erase"):
    return client.post("/settings/erasure", data={"word": word})


def test_every_table_is_somebodys_or_known_to_be_nobodys(every_table):
    assert {t.name for t in every_table} - {
        t.name for t in list_tables_with_learner_rows()
    } == NOTHING


def test_whatever_names_a_learner_is_counted_as_theirs(app: FastAPI):
    tables = inspect(app.state.engine)
    named = {
        table
        for table in tables.get_table_names()
        if any(c["name"] == "learner_id" for c in tables.get_columns(table))
    }

    assert named <= {t.name for t in list_tables_with_learner_rows()}


def test_no_row_is_left_in_any_table(rosa, session, own_everything, every_table):
    learner = own_everything(rosa, "Rosa")
    before = sizes(session, every_table)
    assert all(n == 1 for name, n in before.items() if name not in NOTHING)

    answer = erase(rosa)

    assert answer.status_code == 303
    left = sizes(session, every_table)
    assert {name: n for name, n in left.items() if n} == {}
    assert set(count_records_of_person_by_table(session, learner).values()) == {0}


def test_nothing_of_another_learner_goes(rosa, milo, session, own_everything, every_table):
    own_everything(rosa, "Rosa")
    his = own_everything(milo, "Milo")

    erase(rosa)

    sizes(session, every_table)
    assert set(count_records_of_person_by_table(session, his).values()) == {1}
    assert "Milo" in milo.get("/settings").text


def test_the_browser_forgets_the_key_and_what_it_had_stored(rosa, own_everything):
    own_everything(rosa, "Rosa")

    answer = erase(rosa)

    lines = answer.headers.get_list("set-cookie")
    assert [line for line in lines if "headroom=;" in line and "Max-Age=0" in line]
    assert len([line for line in lines if line.startswith("headroom=")]) == 1
    assert answer.headers["clear-site-data"] == '"cache", "storage"'
    assert rosa.get(answer.headers["location"]).status_code == 200


def test_another_device_with_the_key_sees_nothing_either(
    app: FastAPI, rosa, session, own_everything
):
    own_everything(rosa, "Rosa Meyer")
    with visit(app) as phone:
        phone.cookies.update(rosa.cookies)
        assert "Rosa Meyer" in phone.get("/settings").text
        assert "Rosa Meyer" in phone.get("/glossary").text

        erase(rosa)

        assert "Rosa Meyer" not in phone.get("/settings").text
        assert "Rosa Meyer" not in phone.get("/glossary").text
        phone.post("/settings", data={"name": "New", "minutes_a_day": "30", "retention": "90"})
        assert "Rosa Meyer" not in phone.get("/glossary").text
    session.rollback()
    assert session.scalars(select(Learner.name)).all() == ["New"]


@pytest.mark.parametrize("word", ["", "yes", "erase me", "eras"])
def test_nothing_goes_without_the_word(rosa, session, own_everything, every_table, word):
    own_everything(rosa, "Rosa")
    before = sizes(session, every_table)

    answer = erase(rosa, word)

    assert answer.status_code == 422
    assert "Type “erase” to go on" in answer.text
    assert sizes(session, every_table) == before


def test_the_word_may_be_typed_large(rosa, own_everything):
    own_everything(rosa, "Rosa")

    assert erase(rosa, " ERASE ").status_code == 303


def test_who_has_done_nothing_can_still_leave(client: TestClient):
    assert erase(client).status_code == 303


def test_the_page_says_what_will_go(rosa, own_everything):
    assert "Nothing is kept about you yet" in rosa.get("/settings/erasure").text

    own_everything(rosa, "Rosa")

    page = rosa.get("/settings/erasure").text
    assert "Answers to questions" in page
    assert 'href="/settings/export"' in page
