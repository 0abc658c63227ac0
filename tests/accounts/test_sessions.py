"""A learner's browsers: each has a session of its own, which can be ended."""

import re

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from itsdangerous import Signer
from sqlalchemy import event
from sqlmodel import Session, select

from app.database.tables import Learner, LearnerSession
from app.main import create_app
from app.settings import Settings
from app.web.visitor import SESSION_COOKIE, hash_session_key
from tests.accounts.test_devices import ask_for_code, enter, name
from tests.conftest import visit

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
PHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 "
    "(KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1"
)


@pytest.fixture
def phone(app: FastAPI, rosa: TestClient):
    """A second browser of Rosa's, let in with a code."""
    rosa.headers["user-agent"] = FIREFOX
    name(rosa, "Rosa Meyer")
    with visit(app) as client:
        client.headers["user-agent"] = PHONE
        code = ask_for_code(rosa)
        assert enter(client, code).is_redirect
        yield client


def rows(session: Session) -> list[LearnerSession]:
    session.rollback()
    found = select(LearnerSession).order_by(LearnerSession.id)
    return list(session.exec(found).all())


def number_of(client: TestClient) -> str:
    """The number of the only other browser in the list."""
    (number,) = re.findall(r"/settings/sessions/(\d+)/revocation", client.get("/settings").text)
    return number


def sign_out(client: TestClient, number: str):
    return client.post(f"/settings/sessions/{number}/revocation")


def test_a_visit_writes_no_session(client: TestClient, session: Session):
    client.get("/settings")
    client.get("/glossary")

    assert rows(session) == []


def test_the_first_write_lists_this_browser(rosa: TestClient, session: Session):
    rosa.headers["user-agent"] = FIREFOX

    name(rosa, "Rosa Meyer")

    html = rosa.get("/settings").text
    assert "<b>Firefox on Linux</b>" in html
    assert "(this browser)" in html
    assert "Sign out everywhere else" not in html
    assert len(rows(session)) == 1


def test_a_code_makes_a_session_of_its_own(rosa: TestClient, phone: TestClient, session: Session):
    assert rosa.cookies[SESSION_COOKIE] != phone.cookies[SESSION_COOKIE]
    mine, its = rows(session)
    assert mine.learner_id == its.learner_id
    assert (mine.device, its.device) == ("Firefox on Linux", "Safari on iPhone")
    html = rosa.get("/settings").text.replace("\xa0", " ")
    assert "Safari on iPhone" in html
    assert "last answer or change on June 9, 2026" in html


def test_the_same_questions_are_drawn_in_each_browser(rosa: TestClient, phone: TestClient):
    def drawn(client: TestClient) -> list[str]:
        html = client.get("/concepts/weights").text
        return re.findall(r'name="seed" value="(\d+)"', html)

    assert drawn(rosa) == drawn(phone) != []


def test_a_grade_that_waits_in_one_browser_is_known_in_the_other(
    rosa: TestClient, phone: TestClient
):
    def mark(client: TestClient) -> list[str]:
        html = client.get("/flashcards/offline").text
        return re.findall(r'data-who="([0-9a-f]+)"', html)

    assert mark(rosa) == mark(phone) != []


def test_the_database_holds_nothing_that_lets_anybody_in(
    rosa: TestClient, phone: TestClient, session: Session
):
    keys = {c.cookies[SESSION_COOKIE].split(".")[0] for c in (rosa, phone)}

    kept = {row.digest for row in rows(session)}
    assert kept == {hash_session_key(key) for key in keys}
    assert not keys & set(session.exec(select(Learner.key)).all())


def test_a_browser_that_was_signed_out_is_a_strangers(rosa: TestClient, phone: TestClient):
    assert "Rosa Meyer" in phone.get("/glossary").text
    key = phone.cookies[SESSION_COOKIE]

    answer = sign_out(rosa, number_of(rosa))

    assert answer.headers["location"] == "/settings?ended=yes#devices"
    answer = phone.get("/glossary")
    assert "Rosa Meyer" not in answer.text
    assert answer.headers["x-new-browser"] == "yes"
    assert phone.cookies[SESSION_COOKIE] != key
    assert "Safari on iPhone" not in rosa.get("/settings").text


@pytest.mark.parametrize("days", [0, 1, 500])
def test_a_cookie_that_was_signed_out_never_works_again(
    app: FastAPI, rosa: TestClient, phone: TestClient, clock, days: int
):
    key = phone.cookies[SESSION_COOKIE]
    sign_out(rosa, number_of(rosa))
    clock.tick(days=days)

    with visit(app) as thief:
        for address in ("/settings", "/glossary", "/settings/cards"):
            answer = thief.get(address, headers={"cookie": f"{SESSION_COOKIE}={key}"})
            assert "Rosa Meyer" not in answer.text
            assert key not in answer.headers["set-cookie"]


def test_what_a_signed_out_browser_sends_is_nobodys_of_before(
    rosa: TestClient, phone: TestClient, session: Session
):
    sign_out(rosa, number_of(rosa))

    name(phone, "Somebody else")

    session.rollback()
    names = session.exec(select(Learner.name).order_by(Learner.id)).all()
    assert names == ["Rosa Meyer", "Somebody else"]
    assert "Rosa Meyer" in rosa.get("/settings").text


def test_another_server_process_knows_at_once(
    settings: Settings, live_course, rosa: TestClient, phone: TestClient
):
    twin = create_app(settings, live_course=live_course)
    with TestClient(twin, cookies=phone.cookies) as elsewhere:
        for _ in range(2):  # the second from the kept pages
            assert "Rosa Meyer" in elsewhere.get("/glossary").text

        sign_out(rosa, number_of(rosa))

        assert "Rosa Meyer" not in elsewhere.get("/glossary").text
    twin.state.engine.dispose()


def test_everywhere_else_is_signed_out_at_once(app: FastAPI, rosa: TestClient, phone: TestClient):
    with visit(app) as third:
        enter(third, ask_for_code(rosa))

        rosa.post("/settings/sessions/revocation")

        for client in (phone, third):
            assert "Rosa Meyer" not in client.get("/settings").text
        assert "Rosa Meyer" in rosa.get("/settings").text


def test_signing_out_ends_a_code_that_nobody_has_typed_yet(
    app: FastAPI, rosa: TestClient, phone: TestClient
):
    code = ask_for_code(phone)
    sign_out(rosa, number_of(rosa))

    with visit(app) as third:
        assert enter(third, code).status_code == 422


@pytest.mark.usefixtures("phone")
def test_nobody_signs_out_the_browsers_of_another(
    rosa: TestClient, milo: TestClient, client: TestClient
):
    number = number_of(rosa)
    name(milo, "Milo")

    assert sign_out(milo, number).status_code == 404
    assert sign_out(client, number).status_code == 404

    milo.post("/settings/sessions/revocation")
    client.post("/settings/sessions/revocation")
    assert number_of(rosa) == number


@pytest.mark.parametrize("number", ["0", "-1", "x", str(2**31), str(2**63), "9" * 5000])
def test_a_number_that_no_session_can_have_is_404(rosa: TestClient, number: str):
    assert sign_out(rosa, number).status_code == 404


def test_a_browser_may_sign_itself_out(rosa: TestClient, phone: TestClient):
    number = number_of(rosa)

    answer = sign_out(phone, number)

    assert answer.headers["location"] == "/"
    assert "clear-site-data" in answer.headers
    assert "Rosa Meyer" not in phone.get("/settings").text
    assert sign_out(rosa, number).status_code == 404


def test_leaving_ends_the_session_and_not_only_the_cookie(
    app: FastAPI, rosa: TestClient, phone: TestClient
):
    key = phone.cookies[SESSION_COOKIE]

    phone.post("/settings/departure", data={"leave": "yes"})

    with visit(app) as thief:
        thief.cookies.set(SESSION_COOKIE, key)
        assert "Rosa Meyer" not in thief.get("/settings").text
    assert "Safari on iPhone" not in rosa.get("/settings").text


def test_a_browser_that_continues_elsewhere_leaves_its_former_session(
    rosa: TestClient, milo: TestClient, session: Session
):
    name(rosa, "Rosa Meyer")
    name(milo, "Milo")
    key = milo.cookies[SESSION_COOKIE]

    enter(milo, ask_for_code(rosa), leave="yes")

    (former,) = [r for r in rows(session) if r.digest == hash_session_key(key.split(".")[0])]
    assert former.revoked_at is not None
    assert "Rosa Meyer" in milo.get("/settings").text


def test_the_last_use_is_written_once_a_study_day_and_never_by_reading(
    app: FastAPI, rosa: TestClient, session: Session, clock
):
    name(rosa, "Rosa")
    (row,) = rows(session)
    begun = row.last_seen
    written: list[str] = []
    event.listen(
        app.state.engine,
        "before_cursor_execute",
        lambda *given: written.append(given[2]) if "learner_session SET" in given[2] else 0,
    )

    clock.tick(hours=10)
    name(rosa, "Rosa M")
    clock.tick(hours=8)
    rosa.get("/settings")
    assert written == []
    for _ in range(3):
        name(rosa, "Rosa Meyer")

    assert len(written) == 1
    (row,) = rows(session)
    assert row.last_seen == begun + 18 * 3600 * 1000


def test_a_cookie_from_before_there_were_sessions_goes_on(
    client: TestClient, session: Session, settings: Settings
):
    learner = Learner(key="of-long-ago", name="Rosa Meyer", created_at=1)
    session.add(learner)
    session.flush()
    session.add(
        LearnerSession(
            learner_id=learner.id,
            digest=hash_session_key("of-long-ago"),
            created_at=1,
            last_seen=1,
        )
    )
    session.commit()
    signed = Signer(settings.secret, salt="learner").sign("of-long-ago").decode()
    client.cookies.set(SESSION_COOKIE, signed)
    client.headers["user-agent"] = FIREFOX

    assert "Unknown browser" in client.get("/settings").text
    name(client, "Rosa")
    assert "Firefox on Linux" in client.get("/settings").text


def test_a_page_open_since_before_the_sign_out_sends_no_grade_of_the_learner(
    rosa: TestClient, phone: TestClient, session: Session
):
    html = phone.get("/flashcards?show=yes").text
    (card,) = set(re.findall(r'"/flashcards/([\w-]+)/reviews"', html))
    (who,) = set(re.findall(r'name="who" value="(\w+)"', html))
    sign_out(rosa, number_of(rosa))

    answer = phone.post(
        f"/flashcards/{card}/reviews", data={"rating": "3", "token": "t", "who": who}
    )

    assert answer.status_code == 409
    assert len(rows(session)) == 2  # and nobody new has come of it
