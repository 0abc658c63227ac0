"""The author's bench is closed to every browser that no link has let in."""

import itertools

import pytest
from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.accounts.author_access import AuthorOnlyRoute
from app.authoring import pages
from app.cli.people import create_author_link, revoke_author_sessions_and_print
from app.database.tables import AuditEntry, AuthorLink, AuthorSession, ItemReport, Learner
from app.main import create_app
from app.settings import Settings
from app.web.visitor import AUTHOR_COOKIE
from tests.conftest import Clock, let_in, visit

ADDRESSES = [
    "/authoring",
    "/authoring/changes",
    "/authoring/questions",
    "/authoring/questions?format=csv",
    "/authoring/questions?start=-1",
    "/authoring/questions/k-trade",
    "/authoring/questions/k-trade/form",
    "/authoring/questions/k-trade/regrading",
    "/authoring/questions/there-is-none",
    "/authoring/pages/weights",
    "/authoring/audit",
    "/authoring/help",
    "/authoring/nothing/at/all",
]
POSTS = [
    "/authoring/questions/k-trade/attempts",
    "/authoring/questions/k-trade/regrading",
    "/authoring/reports/1/settlement",
    "/authoring/departure",
    "/authoring/nothing/at/all",
]
# What a proxy on the same machine, or a page of another site, can make of a request.
DISGUISES = [
    {},
    {"host": "localhost"},
    {"host": "127.0.0.1:8000"},
    {"x-forwarded-for": "127.0.0.1"},
    {"x-forwarded-host": "localhost", "x-forwarded-proto": "https"},
    {"x-real-ip": "127.0.0.1", "forwarded": "for=127.0.0.1"},
]


def link(app: FastAPI) -> str:
    return create_author_link(app.state.engine, "", app.state.clock())


def token_of(link: str) -> str:
    return link.partition("token=")[2]


def enter(client: TestClient, token: str):
    return client.post("/authoring/enter", data={"token": token})


@pytest.fixture
def author(app: FastAPI):
    """A browser that was let in."""
    with visit(app) as client:
        yield let_in(client)


def test_nobody_reads_the_bench_without_a_session(client: TestClient, subtests: pytest.Subtests):
    for address, headers in itertools.product(ADDRESSES, DISGUISES):
        with subtests.test(address=address, headers=headers):
            client.cookies.clear()
            answer = client.get(address, headers=headers)

            assert answer.status_code == 403
            assert "headroom author link" in answer.text
            assert "docker exec" in answer.text
            assert "k-trade" not in answer.text
            assert "kv-cache" not in answer.text


def test_nobody_sends_anything_to_the_bench_without_a_session(
    client: TestClient, session: Session, subtests: pytest.Subtests
):
    learner = Learner(key="k", created_at=1)
    session.add(learner)
    session.flush()
    session.add(
        ItemReport(
            learner_id=learner.id,
            token="t",
            item="k-trade",
            revision="r",
            words="w",
            at=1,
        )
    )
    session.commit()

    for address, headers in itertools.product(POSTS, DISGUISES):
        with subtests.test(address=address, headers=headers):
            client.cookies.clear()
            answer = client.post(address, data={"answer": "a"}, headers=headers)

            assert answer.status_code == 403
            session.rollback()
            assert session.exec(select(ItemReport.settled_at)).one() is None


ROUTERS = [router for router in vars(pages).values() if isinstance(router, APIRouter)]


def test_every_route_of_the_bench_asks():
    """Also the next one that somebody adds."""
    routes = [r for router in ROUTERS for r in router.routes if isinstance(r, APIRoute)]
    assert len(routes) >= len({address.partition("?")[0] for address in (*ADDRESSES, *POSTS)})
    assert {type(route) for route in routes} == {AuthorOnlyRoute}


def test_htmx_is_told_in_a_fragment(htmx: TestClient):
    answer = htmx.get("/authoring/questions/k-trade/form")

    assert answer.status_code == 403
    assert "<html" not in answer.text
    assert "headroom author link" in answer.text


def test_a_link_shows_a_button_and_is_not_used_up_by_looking(app: FastAPI, client: TestClient):
    address = link(app)

    for _ in range(3):  # as a mail program does that previews it
        answer = client.get(address)
        assert answer.status_code == 200
        assert "Sign in" in answer.text
        assert answer.headers["cache-control"] == "no-store"
        assert client.get("/authoring").status_code == 403

    assert enter(client, token_of(address)).headers["location"] == "/authoring"
    assert client.get("/authoring").status_code == 200


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(app: FastAPI, client: TestClient):
    lines = enter(client, token_of(link(app))).headers.get_list("set-cookie")

    (line,) = [line for line in lines if line.startswith(AUTHOR_COOKIE)]
    for word in ("HttpOnly", "SameSite=lax", "Path=/", "Max-Age=2592000"):
        assert word in line
    assert "Secure" not in line


def test_over_tls_the_cookie_stays_on_tls(app: FastAPI):
    with TestClient(app, base_url="https://study.example", follow_redirects=False) as client:
        lines = enter(client, token_of(link(app))).headers.get_list("set-cookie")

    assert all("Secure" in line for line in lines)


def test_over_https_no_other_host_can_set_the_cookie_of_an_author(app: FastAPI, author: TestClient):
    own = f"__Host-{AUTHOR_COOKIE}"
    with visit(app, "https://study.example") as client:
        old = author.cookies[AUTHOR_COOKIE]
        client.cookies.set(AUTHOR_COOKIE, old, domain="study.example", path="/")
        assert client.get("/authoring").status_code == 200

        lines = enter(client, token_of(link(app))).headers.get_list("set-cookie")

        assert [line.partition("=")[0] for line in lines if AUTHOR_COOKIE in line] == [
            own,
            AUTHOR_COOKIE,
        ]
        assert own in client.cookies
        assert AUTHOR_COOKIE not in client.cookies
        client.cookies.set(AUTHOR_COOKIE, "x", domain="study.example", path="/")
        assert client.get("/authoring").status_code == 200


def test_a_link_works_once(app: FastAPI, client: TestClient, rosa: TestClient):
    token = token_of(link(app))
    enter(client, token)

    answer = enter(rosa, token)

    assert answer.status_code == 403
    assert "was used already" in answer.text
    assert "headroom author link" in answer.text
    assert "was used already" in rosa.get(f"/authoring/enter?token={token}").text
    assert rosa.get("/authoring").status_code == 403


def test_a_link_ends_after_fifteen_minutes(app: FastAPI, client: TestClient, clock: Clock):
    address = link(app)
    clock.tick(minutes=15)

    answer = client.get(address)
    assert answer.status_code == 403
    assert "more than 15 minutes old" in answer.text
    assert enter(client, token_of(address)).status_code == 403


@pytest.mark.parametrize("token", ["", "x", "A" * 43, "ü" * 5000])
def test_a_link_that_was_never_made_opens_nothing(client: TestClient, token: str):
    answer = enter(client, token)

    assert answer.status_code == 403
    assert "not one of this server" in answer.text
    assert AUTHOR_COOKIE not in client.cookies


@pytest.mark.parametrize("value", ["", "x", "A" * 43, "a.b.c"])
def test_a_cookie_that_was_never_given_opens_nothing(client: TestClient, value: str):
    headers = {"cookie": f"{AUTHOR_COOKIE}={value}"}

    assert client.get("/authoring", headers=headers).status_code == 403


def test_the_database_holds_neither_link_nor_cookie(
    app: FastAPI, client: TestClient, session: Session
):
    token = token_of(link(app))
    enter(client, token)
    key = client.cookies[AUTHOR_COOKIE]

    session.rollback()
    kept = [*session.exec(select(AuthorLink)), *session.exec(select(AuthorSession))]
    assert all(len(row.digest) == 64 for row in kept)
    assert not {token, key} & {row.digest for row in kept}


def test_a_session_ends_a_month_after_its_last_use(author: TestClient, clock: Clock):
    clock.tick(days=29)
    assert author.get("/authoring").status_code == 200
    clock.tick(days=29)
    assert author.get("/authoring").status_code == 200

    clock.tick(days=30, seconds=1)

    assert author.get("/authoring").status_code == 403


def test_the_last_use_is_written_at_most_once_a_day(
    author: TestClient, session: Session, clock: Clock
):
    def used() -> int:
        session.rollback()
        return session.exec(select(AuthorSession.last_used)).one()

    begun = used()
    clock.tick(hours=23)
    answer = author.get("/authoring")
    assert used() == begun
    assert AUTHOR_COOKIE not in answer.headers.get("set-cookie", "")

    clock.tick(hours=2)
    answer = author.get("/authoring")

    assert used() == begun + 25 * 3600 * 1000
    assert f"{AUTHOR_COOKIE}={author.cookies[AUTHOR_COOKIE]}" in answer.headers["set-cookie"]


def test_a_link_works_and_a_session_ends_in_whatever_process(
    app: FastAPI, settings: Settings, live_course, clock: Clock, capsys
):
    twin = create_app(settings, clock, live_course)
    with visit(twin) as client:
        enter(client, token_of(link(app)))
        key = client.cookies[AUTHOR_COOKIE]
        with visit(app) as elsewhere:
            elsewhere.cookies.set(AUTHOR_COOKIE, key)
            assert elsewhere.get("/authoring").status_code == 200

            revoke_author_sessions_and_print(twin.state.engine, None, clock())

            for _ in range(2):
                assert elsewhere.get("/authoring").status_code == 403
                assert client.get("/authoring/changes").status_code == 403
    twin.state.engine.dispose()
    assert "Signed out: 1" in capsys.readouterr().out


def test_a_new_link_in_the_same_browser_ends_its_former_session(
    app: FastAPI, author: TestClient, session: Session
):
    former = author.cookies[AUTHOR_COOKIE]

    enter(author, token_of(link(app)))

    session.rollback()
    ended = session.exec(select(AuthorSession.revoked_at).order_by(AuthorSession.id))
    assert [at is None for at in ended] == [False, True]
    with visit(app) as thief:
        thief.cookies.set(AUTHOR_COOKIE, former)
        assert thief.get("/authoring").status_code == 403


def test_an_author_can_sign_out(author: TestClient):
    key = author.cookies[AUTHOR_COOKIE]

    assert author.post("/authoring/departure").headers["location"] == "/"

    assert author.get("/authoring").status_code == 403
    author.cookies.set(AUTHOR_COOKIE, key)
    assert author.get("/authoring").status_code == 403


def test_only_an_author_is_led_to_the_bench(author: TestClient, client: TestClient):
    for _ in range(2):  # the second from the kept pages
        assert 'href="/authoring"' in author.get("/glossary").text
        assert 'href="/authoring"' not in client.get("/glossary").text
    author.post("/authoring/departure")
    assert 'href="/authoring"' not in author.get("/glossary").text


def test_a_browser_that_was_signed_out_is_no_longer_led_to_the_bench(
    app: FastAPI, author: TestClient, clock: Clock
):
    revoke_author_sessions_and_print(app.state.engine, None, clock())

    author.get("/authoring")

    assert 'href="/authoring"' not in author.get("/glossary").text


def test_what_authors_do_is_in_the_audit_log(
    app: FastAPI, client: TestClient, rosa: TestClient, session: Session, clock: Clock
):
    report = {"token": "t", "words": "The key is wrong."}
    rosa.post("/quiz/kv-cache/k-trade/reports", data=report)
    author = let_in(client)
    number = session.exec(select(ItemReport.id)).one()
    author.post(f"/authoring/reports/{number}/settlement")
    revoke_author_sessions_and_print(app.state.engine, 1, clock())

    session.rollback()
    log = select(AuditEntry).order_by(AuditEntry.id)
    assert [(e.session, e.action, e.subject) for e in session.exec(log)] == [
        (0, "link made", ""),
        (1, "session began", "Unknown browser"),
        (1, "report settled", f"report {number}"),
        (0, "session revoked", "session 1"),
    ]


def test_the_bench_shows_the_audit_log(author: TestClient):
    html = author.get("/authoring/audit").text

    assert "session began" in html
    assert "command line" in html
    assert "(this browser)" in html
    assert "<td>June 9, 2026, 12:00 PM</td>" in html.replace("\xa0", " ")


def test_an_author_who_asks_for_what_is_not_there_gets_404(author: TestClient):
    assert author.get("/authoring/nothing/at/all").status_code == 404
    assert author.post("/authoring/reports/99999999999999999999/settlement").status_code == 404


def test_settling_writes_down_no_learner(author: TestClient, session: Session):
    author.post("/authoring/reports/1/settlement")

    session.rollback()
    assert session.exec(select(Learner.id)).all() == []
