"""The cookie that carries a session."""

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from itsdangerous import Signer

from app.content.live_courses import LiveCourse
from app.main import create_app
from app.settings import Settings
from app.web.visitor import SESSION_COOKIE
from tests.conftest import Clock, visit


def test_the_first_visit_gives_a_key_that_scripts_cannot_read(client: TestClient):
    line = client.get("/settings").headers["set-cookie"]

    assert line.startswith(f"{SESSION_COOKIE}=")
    for word in ("HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=34560000"):
        assert word in line


def test_the_second_visit_gives_none(client: TestClient):
    client.get("/settings")

    assert "set-cookie" not in client.get("/settings").headers


def test_a_write_renews_the_key(client: TestClient):
    client.get("/settings")
    key = client.cookies[SESSION_COOKIE]

    answer = client.post("/settings/codes")

    assert f"{SESSION_COOKIE}={key}" in answer.headers["set-cookie"]


def test_a_forged_key_is_replaced(client: TestClient):
    forged = Signer("guessed", salt="learner").sign("someone").decode()

    answer = client.get("/settings", headers={"cookie": f"{SESSION_COOKIE}={forged}"})

    assert answer.status_code == 200
    assert "someone" not in answer.headers["set-cookie"]


def test_rubbish_in_the_cookie_header_does_no_harm(client: TestClient):
    headers = {"cookie": "a=b; ;;=; headroom; headroom=x.y; theme=purple; zone=%00"}

    assert client.get("/settings", headers=headers).status_code == 200


def test_behind_tls_the_key_travels_on_tls_alone(settings: Settings, live_course):
    secure = settings.model_copy(update={"secure_cookies": True})
    app = create_app(secure, live_course=live_course)

    with TestClient(app) as client:
        answer = client.get("/settings")

    assert "; Secure" in answer.headers["set-cookie"]
    assert "strict-transport-security" in answer.headers
    app.state.engine.dispose()


def test_a_cookie_given_over_tls_stays_on_tls_without_a_setting(app: FastAPI):
    with TestClient(app, base_url="https://study.example") as client:
        assert "; Secure" in client.get("/settings").headers["set-cookie"]


def test_a_value_longer_than_any_of_ours_is_not_read(client: TestClient, settings: Settings):
    signed = Signer(settings.secret, salt="learner").sign("x" * 200).decode()

    answer = client.get("/settings", headers={"cookie": f"{SESSION_COOKIE}={signed}"})

    assert "x" * 200 not in answer.headers["set-cookie"]


def test_the_theme_of_the_browser_is_in_the_first_byte(client: TestClient):
    client.cookies.set("theme", "dark")

    assert '<html lang="en" data-theme="dark">' in client.get("/settings").text


def test_the_secret_is_made_once_and_only_the_owner_can_read_it(settings: Settings, live_course):
    unset = settings.model_copy(update={"secret": ""})
    apps = [create_app(unset, live_course=live_course) for _ in range(2)]
    secret = settings.data / "secret"

    assert secret.stat().st_mode & 0o777 == 0o600
    with TestClient(apps[0]) as first, TestClient(apps[1]) as second:
        first.get("/settings")
        second.cookies.update(first.cookies)
        assert "set-cookie" not in second.get("/settings").headers
    for app in apps:
        app.state.engine.dispose()


def test_two_servers_of_one_host_keep_their_learners_apart(
    settings: Settings, clock: Clock, live_course: LiveCourse, databases, tmp_path
) -> None:
    """One browser, two servers of one name: each finds its own learner again."""
    jar: dict[str, str] = {}
    with databases.empty(tmp_path) as address:
        other = settings.model_copy(update={"cookie": "second", "database_url": address})
        apps = [create_app(one, clock, live_course) for one in (settings, other)]
        for app, minutes in zip(apps, ("20", "40"), strict=True):
            with visit(app) as browser:
                browser.cookies.update(jar)
                browser.post("/settings", data={"minutes_a_day": minutes, "zone": "UTC"})
                jar |= dict(browser.cookies)

        assert {"headroom", "second"} <= jar.keys()
        for app, minutes in zip(apps, ("20", "40"), strict=True):
            with visit(app) as browser:
                browser.cookies.update(jar)
                page = browser.get("/settings")
                assert f'value="{minutes}"' in page.text
                assert "set-cookie" not in page.headers
            app.state.engine.dispose()


def set_minutes(browser: TestClient, minutes: int) -> list[str]:
    """Write something; returns the Set-Cookie lines of the answer."""
    form = {"minutes_a_day": str(minutes), "zone": "UTC"}
    answer = browser.post("/settings", data=form)
    assert answer.status_code == 303
    return answer.headers.get_list("set-cookie")


def test_over_https_the_cookie_is_one_that_no_other_host_can_set(app: FastAPI):
    with visit(app, "https://study.example") as browser:
        line = browser.get("/settings").headers["set-cookie"]

    assert line.startswith(f"__Host-{SESSION_COOKIE}=")
    assert "; Path=/;" in line
    assert "; Secure" in line
    assert "Domain" not in line


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("", "http://study.example"),
        ("https://study.example/nca/", "https://study.example"),
    ],
)
def test_without_https_or_below_a_path_the_cookie_has_its_plain_name(
    settings: Settings, clock: Clock, live_course: LiveCourse, url: str, base: str
):
    app = create_app(settings.model_copy(update={"url": url}), clock, live_course)
    with visit(app, base) as browser:
        line = browser.get("/settings").headers["set-cookie"]
    app.state.engine.dispose()

    assert line.startswith(f"{SESSION_COOKIE}=")


def test_a_cookie_of_the_plain_name_counts_until_a_write_replaces_it(app: FastAPI):
    with visit(app) as browser:
        set_minutes(browser, 20)
        old = browser.cookies[SESSION_COOKIE]
    with visit(app, "https://study.example") as browser:
        browser.cookies.set(SESSION_COOKIE, old, domain="study.example", path="/")
        page = browser.get("/settings")
        new, expired = set_minutes(browser, 40)
        again = browser.get("/settings")

        assert 'value="20"' in page.text
        assert "set-cookie" not in page.headers
        assert new.startswith(f"__Host-{SESSION_COOKIE}={old}; ")
        assert expired.startswith(f"{SESSION_COOKIE}=; Max-Age=0; Path=/;")
        assert dict(browser.cookies) == {f"__Host-{SESSION_COOKIE}": old}
        assert 'value="40"' in again.text


@pytest.mark.parametrize("order", ["{mine}; {theirs}", "{theirs}; {mine}"])
def test_a_cookie_of_another_host_does_not_count_beside_the_own_one(app: FastAPI, order: str):
    with visit(app, "https://study.example") as victim:
        set_minutes(victim, 20)
        mine = f"__Host-{SESSION_COOKIE}={victim.cookies[f'__Host-{SESSION_COOKIE}']}"
    with visit(app) as attacker:
        set_minutes(attacker, 40)
        theirs = f"{SESSION_COOKIE}={attacker.cookies[SESSION_COOKIE]}"
    both = {"cookie": order.format(mine=mine, theirs=theirs)}
    with visit(app, "https://study.example") as browser:
        assert 'value="20"' in browser.get("/settings", headers=both).text


@pytest.mark.parametrize("lines", [1, 2])
def test_the_first_of_two_cookies_of_one_name_counts(app: FastAPI, lines: int):
    cookies = []
    for minutes in (20, 40):
        with visit(app) as browser:
            set_minutes(browser, minutes)
            cookies.append(f"{SESSION_COOKIE}={browser.cookies[SESSION_COOKIE]}")
    sent = ["; ".join(cookies)] if lines == 1 else cookies
    with visit(app) as browser:
        page = browser.get("/settings", headers=[("cookie", line) for line in sent])

    assert 'value="20"' in page.text


@pytest.mark.parametrize("name", ["", "a b", "a=b", "theme", "x" * 41, "é"])
def test_a_cookie_has_a_name_that_browsers_and_rooms_can_bear(name: str) -> None:
    with pytest.raises(ValueError, match="at most 40"):
        Settings(cookie=name or " ")
