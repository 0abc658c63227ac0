"""Continue on another device, and leave one."""

import re

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.db.tables import DeviceCode
from app.web.cookies import COOKIE
from app.web.front.rate_counting import Rates
from tests.conftest import visit


def name(client: TestClient, words: str) -> None:
    form = {"name": words, "minutes_a_day": "30", "retention": "90"}
    assert client.post("/settings", data=form).status_code == 303


def ask_for_code(client: TestClient) -> str:
    page = client.post("/settings/codes").text
    found = re.search(r">([2-9A-Z]{4}-[2-9A-Z]{4})<", page)
    assert found
    return found[1]


@pytest.fixture
def code(rosa: TestClient) -> str:
    name(rosa, "Rosa Meyer")
    return ask_for_code(rosa)


def test_a_code_brings_the_learner_to_another_browser(client: TestClient, code: str):
    answer = client.post("/continue", data={"code": code})

    assert answer.headers["location"] == "/"
    assert "Rosa Meyer" in client.get("/settings").text


def test_a_code_may_be_typed_carelessly(client: TestClient, code: str):
    answer = client.post(
        "/continue", data={"code": f" {code.lower().replace('-', ' ')} "}
    )

    assert answer.status_code == 303


def test_a_code_works_once(app: FastAPI, client: TestClient, code: str):
    client.post("/continue", data={"code": code})

    with visit(app) as third:
        answer = third.post("/continue", data={"code": code})

    assert answer.status_code == 422
    assert "works once" in answer.text


def test_a_code_ends_after_ten_minutes(client: TestClient, code: str, clock):
    clock.tick(minutes=10, seconds=1)

    assert client.post("/continue", data={"code": code}).status_code == 422


def test_a_new_code_ends_the_old_one(rosa: TestClient, client: TestClient, code: str):
    newer = ask_for_code(rosa)

    assert client.post("/continue", data={"code": code}).status_code == 422
    assert client.post("/continue", data={"code": newer}).status_code == 303


def test_the_database_does_not_hold_the_code(code: str, session: Session):
    (row,) = session.exec(select(DeviceCode)).all()

    assert code.replace("-", "") not in row.digest
    assert len(row.digest) == 64


def test_guessing_is_stopped_until_the_minute_ends(
    app: FastAPI, client: TestClient, code: str, clock
):
    app.state.rates = Rates(app.state.settings.rates, lambda: clock().timestamp())
    client.get("/continue")
    for _ in range(10):
        assert client.post("/continue", data={"code": "AAAA-AAAA"}).status_code == 422

    answer = client.post("/continue", data={"code": code})

    assert answer.status_code == 429
    assert "Wait 60 seconds" in answer.text
    assert code in answer.text  # nothing typed is lost
    clock.tick(seconds=61)
    assert client.post("/continue", data={"code": code}).status_code == 303


def test_guessing_without_a_cookie_is_stopped_by_the_limit_of_the_address(
    app: FastAPI, client: TestClient, code: str, clock
):
    app.state.rates = Rates({"codes": "20/minute"}, lambda: clock().timestamp())
    for _ in range(20):
        client.cookies.clear()
        assert client.post("/continue", data={"code": "AAAA-AAAA"}).status_code == 422

    client.cookies.clear()
    assert client.post("/continue", data={"code": code}).status_code == 429


def test_a_browser_with_records_asks_before_it_leaves_them(milo: TestClient, code: str):
    name(milo, "Milo")

    answer = milo.post("/continue", data={"code": code})

    assert answer.status_code == 422
    assert "will be left behind" in answer.text
    assert milo.post("/continue", data={"code": code, "leave": "yes"}).is_redirect
    assert "Rosa Meyer" in milo.get("/settings").text


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("abc", "“abc” is not a code. A code has 8 letters and digits, none of"),
        ("", "Enter a code. A code has 8 letters and digits, none of"),
        ("AAAA-AAAA", "This code is not valid."),
    ],
)
def test_a_wrong_code_is_refused_before_records_are_given_up_for_it(
    milo: TestClient, typed: str, said: str
):
    name(milo, "Milo")

    answer = milo.post("/continue", data={"code": typed})

    assert answer.status_code == 422
    assert said in answer.text
    assert "Tick the box" not in answer.text


@pytest.mark.usefixtures("code")
def test_leaving_takes_the_key_out_of_the_browser(rosa: TestClient):
    key = rosa.cookies[COOKIE]

    answer = rosa.post("/settings/departure", data={"leave": "yes"})

    assert answer.headers["location"] == "/"
    assert "Rosa Meyer" not in rosa.get("/settings").text
    assert rosa.cookies[COOKIE] != key


@pytest.mark.usefixtures("code")
def test_leaving_without_the_tick_does_nothing(rosa: TestClient):
    answer = rosa.post("/settings/departure")

    assert answer.status_code == 422
    assert "Tick the box first" in answer.text
    assert "Rosa Meyer" in rosa.get("/settings").text
