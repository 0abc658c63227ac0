"""How much one learner may have of what no course bounds."""

import asyncio
import dataclasses
import itertools
import re

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlmodel import Session, func, select

from app.database import quotas
from app.database.tables import (
    Attempt,
    CalendarFeed,
    DeviceCode,
    ItemReport,
    LearnerSession,
    OwnCard,
    PracticeRun,
    Review,
    Sitting,
)
from tests.accounts.test_devices import ask_for_code
from tests.conftest import visit
from tests.exams.sitting import START, begin, finish
from tests.import_export.test_cards_out import review
from tests.loops import outcome

QUESTION = "/quiz/kv-cache/k-order"
_number = itertools.count()


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody may have three of each."""
    for name, module in (
        ("OWN_CARDS", "app.spaced_repetition.added_cards"),
        ("OPEN_REPORTS", "app.quiz.store"),
        ("SITTINGS", "app.exams.store"),
        ("SESSIONS", "app.accounts.learner_store"),
        ("CARD_LOG", "app.spaced_repetition.review_log"),
    ):
        few = dataclasses.replace(getattr(quotas, name), max_rows=3)
        monkeypatch.setattr(f"{module}.{name}", few)
    monkeypatch.setattr("app.quiz.store.MOST_RUNS", 3)


def count(session: Session, table: type) -> int:
    session.rollback()
    return session.exec(select(func.count()).select_from(table)).one()


def write(client: TestClient, **fields: str) -> httpx.Response:
    body = {"front": "Front", "back": "Back", "token": f"{next(_number)}", **fields}
    return client.post("/flashcards/own", data=body)


def report(client: TestClient, token: str) -> httpx.Response:
    return client.post(f"{QUESTION}/reports", data={"words": "Wrong.", "token": token})


def test_more_cards_than_one_may_have_are_refused_with_what_was_typed(
    rosa: TestClient, milo: TestClient, session: Session
) -> None:
    assert [write(rosa).status_code for _ in range(3)] == [303] * 3

    refused = write(rosa, front="A long front", back="A long back")

    assert refused.status_code == 409
    assert "You have 3 cards of your own" in refused.text
    assert "Remove a deck at Settings" in refused.text
    assert "A long front</textarea>" in refused.text
    assert "A long back</textarea>" in refused.text
    assert count(session, OwnCard) == 3
    assert write(milo).status_code == 303, "each learner has their own"


def test_a_card_that_is_sent_again_is_no_more_than_before(rosa: TestClient) -> None:
    for number in range(3):
        write(rosa, token=f"t{number}")

    assert write(rosa, token="t2").status_code == 303


def test_two_tabs_that_save_at_once_do_not_pass_the_limit(
    app: FastAPI, rosa: TestClient, session: Session
) -> None:
    write(rosa)
    cookies = dict(rosa.cookies)

    async def save(number: int) -> int:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://test", cookies=cookies
        ) as tab:
            body = {"front": "F", "back": "B", "token": f"tab {number}"}
            return (await tab.post("/flashcards/own", data=body)).status_code

    async def together() -> list[int]:
        return await asyncio.gather(*map(save, range(10)))

    statuses = outcome(together())

    assert sorted(statuses) == [303] * 2 + [409] * 8
    assert count(session, OwnCard) == 3


def test_reports_are_counted_until_they_are_settled(rosa: TestClient, session: Session) -> None:
    assert [report(rosa, f"{n}").status_code for n in range(4)] == [303] * 3 + [409]
    assert "3 of your reports are still open" in report(rosa, "5").text
    assert report(rosa, "2").status_code == 303, "it is there already"

    session.exec(select(ItemReport)).first().settled_at = 1
    session.commit()

    assert report(rosa, "6").status_code == 303
    assert count(session, ItemReport) == 4


def test_the_oldest_practice_runs_go_and_their_answers_stay(
    rosa: TestClient, milo: TestClient, session: Session
) -> None:
    def start(client: TestClient) -> str:
        body = {"pick": "mixed", "count": "1", "token": f"{next(_number)}"}
        return client.post("/quiz/runs", data=body).headers["location"]

    other, first = start(milo), start(rosa)
    page = rosa.get(rosa.get(first).headers["location"]).text
    attempts = re.search(r'action="(/quiz/[^"]+/attempts)"', page)
    assert attempts
    fields = {"run": first.rpartition("/")[2], "unknown": "yes", "token": "t"}
    fields["context"] = "placement"  # where one may say that one does not know
    sent = rosa.post(attempts[1], data=fields)
    assert sent.status_code == 303, sent.text

    runs = [start(rosa) for _ in range(3)]

    assert count(session, PracticeRun) == 4
    assert rosa.get(first).status_code == 404
    assert [rosa.get(run).status_code for run in runs] == [303] * 3
    assert milo.get(other).status_code == 303
    assert session.exec(select(Attempt)).one().run_id is None


def test_more_mock_exams_than_one_may_have_are_refused(rosa: TestClient, session: Session) -> None:
    for _ in range(3):
        finish(rosa, begin(rosa))

    refused = rosa.post(f"{START}/sittings", data={"token": "t", "kinds": "all"})

    assert refused.status_code == 409
    assert "You have sat 3 mock exams" in refused.text
    assert count(session, Sitting) == 3


def test_more_browsers_than_one_may_have_are_refused_and_the_code_stays_good(
    app: FastAPI, rosa: TestClient, session: Session
) -> None:
    for _ in range(2):
        with visit(app) as client:
            form = {"code": ask_for_code(rosa), "confirm": "yes"}
            sent = client.post("/continue", data=form)
            assert sent.status_code == 303

    code = ask_for_code(rosa)
    with visit(app) as client:
        refused = client.post("/continue", data={"code": code, "confirm": "yes"})

    assert refused.status_code == 409
    assert "You have signed in from 3 browsers" in refused.text
    assert count(session, LearnerSession) == 3
    assert session.exec(select(DeviceCode)).one().used_at is None


def test_codes_and_calendars_take_the_place_of_the_one_before(
    rosa: TestClient, session: Session
) -> None:
    for _ in range(3):
        ask_for_code(rosa)
        rosa.post("/plan/calendar", data={"wish": "new"})

    assert count(session, DeviceCode) == 1
    assert count(session, CalendarFeed) == 1


def test_the_log_of_one_card_ends_and_the_card_can_be_put_aside(
    rosa: TestClient, session: Session
) -> None:
    """All of it is replayed when something is set or undone, while others wait."""
    card = "/flashcards/w-c-bf16"
    for turn in range(3):
        review(rosa, "w-c-bf16", 1 + turn)

    grade = {"rating": "3", "token": "w-c-bf16.3"}
    graded = rosa.post(f"{card}/reviews", data=grade)
    acted = rosa.post(f"{card}/acts", data={"act": "forget", "token": "t"})

    assert (graded.status_code, acted.status_code) == (409, 409)
    assert "This card has 3 entries in its log" in graded.text
    assert "Put it aside" in acted.text
    assert count(session, Review) == 3
    assert rosa.post(f"{card}/suspension", data={"aside": "yes"}).status_code == 303
