"""A named proxy is believed, others are not; every address lies under the prefix."""

import re

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.main import create_app
from app.settings import Settings
from tests.amounts import each_of_sample

PROXY = ("10.1.2.3", 4000)
SAID = {"x-forwarded-for": "203.0.113.9", "x-forwarded-proto": "https"}
BELOW = "https://study.example/study/"
# Every address of a page that a browser follows or fetches by itself.
ADDRESSES = re.compile(r'\s(?:href|src|action|formaction|hx-get|hx-post|data-over)="(/[^"]*)"')


@pytest.fixture
def made(settings: Settings, clock, live_course):
    """The app with further settings."""
    apps: list[FastAPI] = []

    def make(**changed: str) -> FastAPI:
        new = Settings.model_validate({**settings.model_dump(), **changed})
        apps.append(create_app(new, clock, live_course))
        return apps[-1]

    yield make
    for app in apps:
        app.state.engine.dispose()


def through(app: FastAPI, peer: tuple[str, int] = PROXY) -> TestClient:
    client = TestClient(app, client=peer, follow_redirects=False)
    client.headers.update(SAID)
    return client


def test_a_named_proxy_says_that_it_is_https(made):
    with through(made(proxies="10.1.0.0/16")) as client:
        cookie = client.get("/settings").headers["set-cookie"]

    assert "; Secure" in cookie


def test_nobody_else_is_believed(made):
    with through(made(proxies="10.9.9.9")) as client:
        answer = client.get("/settings")

    assert "; Secure" not in answer.headers["set-cookie"]


def test_without_a_setting_loopback_is_not_believed_either(made):
    with through(made(), ("127.0.0.1", 4000)) as client:
        answer = client.get("/settings")

    assert "; Secure" not in answer.headers["set-cookie"]


def test_limits_count_the_client_behind_a_named_proxy(made):
    app = made(proxies="10.1.2.3", rate_searches="1/hour")
    with through(app) as client:
        one = [client.get(f"/search?q=w{n}").status_code for n in range(2)]
        client.headers["x-forwarded-for"] = "203.0.113.10"
        another = client.get("/search?q=w9").status_code

    assert (one, another) == ([200, 429], 200)


def test_limits_do_not_count_a_name_that_anybody_can_give(made):
    with through(made(rate_searches="1/hour")) as client:
        client.get("/search")
        first = client.get("/search?q=w1").status_code
        client.headers["x-forwarded-for"] = "203.0.113.10"
        second = client.get("/search?q=w2").status_code

    assert (first, second) == (200, 429)


@each_of_sample(
    "page",
    [
        *("/", "/course", "/concepts/weights", "/quiz", "/flashcards", "/glossary"),
        *("/calculators", "/calculators/kv-cache", "/calculators/compare"),
        *("/settings", "/search?q=cache", "/progress", "/plan", "/nowhere"),
    ],
    4,
)
def test_every_address_of_a_page_lies_under_the_prefix(made, page: str):
    with through(made(url=BELOW)) as client:
        found = ADDRESSES.findall(client.get(page).text)

    assert found
    assert [address for address in found if not address.startswith("/study/")] == []


def test_a_proxy_may_take_the_prefix_off_or_leave_it_on(made):
    with through(made(url=BELOW)) as client:
        off, on = client.get("/glossary"), client.get("/study/glossary")

    assert off.status_code == on.status_code == 200
    assert '"/study/course"' in off.text
    assert '"/study/course"' in on.text


def test_a_redirect_and_its_cookie_stay_under_the_prefix(made):
    with through(made(url=BELOW)) as client:
        answer = client.post("/settings/appearance", data={"theme": "dark"})

    assert answer.headers["location"].startswith("/study/settings")
    cookies = answer.headers.get_list("set-cookie")
    assert len(cookies) > 1
    assert all("path=/study/" in cookie.lower() for cookie in cookies)


@pytest.mark.parametrize(
    ("url", "root"),
    [("https://study.example/", ""), ("https://study.example/nca/", "/nca")],
)
def test_the_public_address_names_the_prefix(made, url: str, root: str):
    with through(made(proxies="10.1.2.3", url=url)) as client:
        page = client.get("/glossary")
        cookie = client.get("/settings").headers["set-cookie"]

    assert f'"{root}/course"' in page.text
    assert f"; Path={root}/;" in cookie


class TestNames:
    def test_any_name_is_served_without_the_setting(self, made):
        with TestClient(made()) as client:
            assert client.get("/", headers={"host": "evil.example"}).status_code == 200

    def test_the_setting_names_those_that_are_served(self, made):
        with TestClient(made(hosts="study.example, other.example")) as client:
            served = client.get("/", headers={"host": "Study.example:8000"})
            foreign = client.get("/", headers={"host": "evil.example"})
            kept = client.get("/glossary", headers={"host": "evil.example"})
            alive = client.get("/healthz", headers={"host": "10.0.0.1"})

        assert served.status_code == 200
        assert foreign.status_code == kept.status_code == 421
        assert "evil.example" in foreign.text
        assert alive.status_code == 200


def test_links_that_leave_the_site_use_the_public_address(made):
    with TestClient(made(url="https://study.example/nca/")) as client:
        page = client.get("/api", headers={"host": "evil.example"}).text
        sheet = client.get("/calculators/kv-cache/result.md", headers={"host": "evil.example"}).text

    assert "https://study.example/nca/api/v1" in page
    assert "https://study.example/nca/calculators/kv-cache" in sheet
    assert "evil.example" not in page + sheet


def test_the_public_address_may_write_whatever_name_the_proxy_passes_on(made):
    own = {"origin": "https://study.example", "host": "10.0.0.7:8000"}
    with TestClient(made(url="https://study.example/"), follow_redirects=False) as client:
        ours = client.post("/settings/appearance", data={"theme": ""}, headers=own)
        foreign = client.post(
            "/settings/appearance",
            data={"theme": ""},
            headers={**own, "origin": "https://evil.example"},
        )

    assert (ours.status_code, foreign.status_code) == (303, 403)
