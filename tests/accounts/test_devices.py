"""Continue on another device, and leave one."""

import re

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.database.tables import DeviceCode, Learner, SectionNoteRow, StudyDayActivity
from app.web.request_limits import RateLimiter
from app.web.visitor import SESSION_COOKIE
from tests.conftest import visit


def name(client: TestClient, words: str) -> None:
    form = {"name": words, "minutes_a_day": "30", "retention": "90"}
    assert client.post("/settings", data=form).status_code == 303


def ask_for_code(client: TestClient) -> str:
    page = client.post("/settings/codes").text
    found = re.search(r">([2-9A-Z]{4}-[2-9A-Z]{4})<", page)
    assert found
    return found[1]


def enter(client: TestClient, code: str, **more: str):
    """Enter a code and confirm that the records are one's own."""
    form = {"code": code, "confirm": "yes", **more}
    return client.post("/continue", data=form)


@pytest.fixture
def code(rosa: TestClient) -> str:
    name(rosa, "Rosa Meyer")
    return ask_for_code(rosa)


def test_a_code_brings_the_learner_to_another_browser(client: TestClient, code: str):
    answer = enter(client, code)

    assert answer.headers["location"] == "/"
    assert "Rosa Meyer" in client.get("/settings").text


def test_a_code_may_be_typed_carelessly(client: TestClient, code: str):
    answer = enter(client, f" {code.lower().replace('-', ' ')} ")

    assert answer.status_code == 303


def test_a_code_works_once(app: FastAPI, client: TestClient, code: str):
    enter(client, code)

    with visit(app) as third:
        answer = enter(third, code)

    assert answer.status_code == 422
    assert "works once" in answer.text


def test_a_code_ends_after_ten_minutes(client: TestClient, code: str, clock):
    clock.tick(minutes=10, seconds=1)

    assert enter(client, code).status_code == 422


def test_a_new_code_ends_the_old_one(rosa: TestClient, client: TestClient, code: str):
    newer = ask_for_code(rosa)

    assert enter(client, code).status_code == 422
    assert enter(client, newer).status_code == 303


def test_the_database_does_not_hold_the_code(code: str, session: Session):
    (row,) = session.exec(select(DeviceCode)).all()

    assert code.replace("-", "") not in row.digest
    assert len(row.digest) == 64


def test_guessing_is_stopped_until_the_minute_ends(
    app: FastAPI, client: TestClient, code: str, clock
):
    app.state.rates = RateLimiter(
        app.state.settings.rate_settings_by_kind, lambda: clock().timestamp()
    )
    client.get("/continue")
    for _ in range(10):
        assert client.post("/continue", data={"code": "AAAA-AAAA"}).status_code == 422

    answer = enter(client, code)

    assert answer.status_code == 429
    assert "Wait 60 seconds" in answer.text
    assert code in answer.text  # nothing typed is lost
    clock.tick(seconds=61)
    assert enter(client, code).status_code == 303


def test_guessing_without_a_cookie_is_stopped_by_the_limit_of_the_address(
    app: FastAPI, client: TestClient, code: str, clock
):
    app.state.rates = RateLimiter({"codes": "20/minute"}, lambda: clock().timestamp())
    for _ in range(20):
        client.cookies.clear()
        assert client.post("/continue", data={"code": "AAAA-AAAA"}).status_code == 422

    client.cookies.clear()
    assert enter(client, code).status_code == 429


def test_a_browser_with_records_asks_before_it_leaves_them(milo: TestClient, code: str):
    name(milo, "Milo")

    page = milo.get(f"/continue?code={code}").text
    answer = enter(milo, code)

    assert "This browser leaves the records that it has now" in page
    assert "Check the box first" not in page
    assert answer.status_code == 422
    assert "Check the box first" in answer.text
    for text in (page, answer.text):
        assert facts(text)["Name"] == ["Rosa Meyer", "Milo"]
    assert enter(milo, code, leave="yes").is_redirect
    assert "Rosa Meyer" in milo.get("/settings").text


def facts(page: str) -> dict[str, list[str]]:
    """What a page says of records: the cells of each line by its label."""
    lines = re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL)
    cells = [re.findall(r"<t[hd].*?>(.*?)</t[hd]>", line, re.DOTALL) for line in lines]
    return {line[0]: [strip(cell) for cell in line[1:]] for line in cells}


def strip(html: str) -> str:
    return re.sub(r"<[^>]*>", "", html).replace("\xa0", " ").strip()


@pytest.mark.parametrize("way", ["link", "typed"])
def test_a_code_says_whose_records_it_leads_to_and_changes_nothing_yet(
    client: TestClient, code: str, way: str
):
    if way == "link":
        answer = client.get(f"/continue?code={code}")
    else:
        answer = client.post("/continue", data={"code": code})

    assert answer.status_code == 200
    assert "this browser studies as “Rosa Meyer” from now\non" in answer.text
    assert "This browser leaves" not in answer.text
    told = facts(answer.text)
    assert told["Name"] == ["Rosa Meyer"]
    assert told["Since"] == ["June 9, 2026"]
    assert told["Last answer or change"] == ["June 9, 2026"]  # in the words of the settings
    assert "Rosa Meyer" not in client.get("/settings").text
    assert enter(client, code).is_redirect


def test_records_are_told_by_what_was_done_with_them(
    client: TestClient, code: str, session: Session
):
    learner = session.exec(select(Learner)).one()
    for day in ("2026-06-08", "2026-06-09"):
        session.add(StudyDayActivity(learner_id=learner.id, day=day, answers=600, reviews=7))
    session.add(SectionNoteRow(learner_id=learner.id, topic="t", section="", words="w", at=1))
    session.add(SectionNoteRow(learner_id=learner.id, topic="u", section="", marked=True, at=1))
    session.commit()

    told = facts(client.get(f"/continue?code={code}").text)

    assert [
        told[name] for name in ("Days with answers or reviews", "Answers", "Reviews", "Notes")
    ] == [
        ["2"],
        ["1,200"],
        ["14"],
        ["1"],
    ]


def test_a_code_of_ones_own_records_is_not_used_up(rosa: TestClient, code: str):
    answer = enter(rosa, code, leave="yes")

    assert answer.status_code == 409
    assert "records that are here already" in answer.text
    assert "Rosa Meyer" in rosa.get("/settings").text


def test_another_site_cannot_use_up_the_tries_of_an_address(
    app: FastAPI, client: TestClient, code: str
):
    app.state.rates = RateLimiter({"codes": "1/day"})
    embedded = {"sec-fetch-site": "cross-site", "sec-fetch-dest": "image"}
    for _ in range(5):
        answer = client.get("/continue?code=AAAA-AAAA", headers=embedded)
        assert answer.status_code == 200
        assert "AAAA-AAAA" in answer.text

    followed = {"sec-fetch-site": "cross-site", "sec-fetch-dest": "document"}
    answer = client.get(f"/continue?code={code}", headers=followed)
    assert facts(answer.text)["Name"] == ["Rosa Meyer"]


def test_a_code_in_the_address_is_guessed_as_seldom_as_a_typed_one(
    app: FastAPI, client: TestClient, code: str
):
    app.state.rates = RateLimiter({"codes": "3/day"})
    client.get("/continue")
    tried = [client.get("/continue?code=AAAA-AAAA").status_code for _ in range(4)]

    assert tried == [422, 422, 422, 429]
    assert client.get(f"/continue?code={code}").status_code == 429


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
    assert "Check the box" not in answer.text


@pytest.mark.usefixtures("code")
def test_leaving_takes_the_key_out_of_the_browser(rosa: TestClient):
    key = rosa.cookies[SESSION_COOKIE]

    answer = rosa.post("/settings/departure", data={"leave": "yes"})

    assert answer.headers["location"] == "/"
    assert "Rosa Meyer" not in rosa.get("/settings").text
    assert rosa.cookies[SESSION_COOKIE] != key


@pytest.mark.usefixtures("code")
def test_leaving_without_the_tick_does_nothing(rosa: TestClient):
    answer = rosa.post("/settings/departure")

    assert answer.status_code == 422
    assert "Check the box first" in answer.text
    assert "Rosa Meyer" in rosa.get("/settings").text
