"""How often one client may ask for what is costly."""

import pytest
from starlette.exceptions import HTTPException

from app.config import Settings
from app.main import create_app
from app.web.front.rate_counting import Rates, client_of, kind_of
from app.web.front.rate_setting import read_rates
from tests.conftest import visit


class Seconds:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def spent(rates: Rates, client: str = "a") -> int:
    """How many a client gets before it is refused."""
    for count in range(100):
        try:
            rates.admit("work", client)
        except HTTPException:
            return count
    return 100


def test_a_client_is_refused_until_the_window_ends():
    clock = Seconds()
    rates = Rates({"work": "3/minute"}, clock)

    assert spent(rates) == 3
    assert spent(rates, "b") == 3
    clock.now += 60
    assert spent(rates) == 3


def test_the_narrowest_of_several_rates_counts():
    clock = Seconds()
    rates = Rates({"work": "3/minute;4/day"}, clock)

    assert spent(rates) == 3
    clock.now += 60
    assert spent(rates) == 1


def test_the_refusal_says_how_long_to_wait():
    rates = Rates({"work": "1/hour"}, Seconds())
    rates.admit("work", "a")

    with pytest.raises(HTTPException) as refused:
        rates.admit("work", "a")

    assert refused.value.status_code == 429
    assert refused.value.headers == {"retry-after": "2600"}
    assert "Wait 2600 seconds" in refused.value.detail


def test_off_means_no_limit():
    assert spent(Rates({"work": "off"}, Seconds())) == 100


@pytest.mark.parametrize("words", ["", "60", "0/minute", "5/week", "5/minute,6/hour"])
def test_a_rate_that_cannot_be_read_is_refused(words: str):
    with pytest.raises(ValueError, match="60/minute, or off"):
        read_rates(words)


@pytest.mark.parametrize(
    ("request_", "kind"),
    [
        (("GET", "/calculators/kv-cache/result", b""), "estimates"),
        (("POST", "/api/v1/estimates/kv-cache", b""), "estimates"),
        (("GET", "/calculators/compare", b"a=1"), "comparisons"),
        (("GET", "/search", b"q=mig"), "searches"),
        (("GET", "/search", b""), ""),
        (("POST", "/settings/cards", b""), "imports"),
        (("GET", "/settings/cards", b""), ""),
        (("GET", "/settings/cards.apkg", b"newest=1"), "exports"),
        (("GET", "/settings/export", b""), "exports"),
        (("GET", "/calendar/key.ics", b""), "calendars"),
        (("GET", "/", b""), ""),
    ],
)
def test_costly_work_is_known_by_its_address(request_, kind: str):
    assert kind_of(*request_) == kind


def test_a_network_of_ipv6_is_one_client():
    def of(host: str) -> str:
        return client_of({"type": "http", "client": (host, 1)})

    assert of("2001:db8::1") == of("2001:db8::2") != of("2001:db8:1::1")
    assert of("10.0.0.1") != of("10.0.0.2")


def test_who_searches_too_often_is_told_to_wait(
    settings: Settings, clock, live_library
):
    few = settings.model_copy(update={"rate_searches": "2/hour"})
    with visit(create_app(few, clock, live_library)) as client:
        answers = [client.get(f"/search?q=word{n}") for n in range(3)]

    assert [a.status_code for a in answers] == [200, 200, 429]
    assert "more than 2 times in one hour" in answers[2].text
    assert int(answers[2].headers["retry-after"]) <= 3600


def test_so_many_learners_begin_from_one_address(
    settings: Settings, clock, live_library
):
    few = settings.model_copy(update={"rate_learners": "2/hour"})
    app = create_app(few, clock, live_library)
    answers = []
    for _ in range(3):
        with visit(app) as browser:
            answers.append(browser.post("/concepts/weights/readings"))

    assert [a.status_code for a in answers] == [303, 303, 429]
    assert "from your address" in answers[2].text


def test_forms_are_counted_by_address_and_by_browser(
    settings: Settings, clock, live_library
):
    few = settings.model_copy(
        update={"rate_writes": "5/hour", "rate_learner_writes": "3/hour"}
    )
    app = create_app(few, clock, live_library)

    def send(browser) -> list[int]:
        path = "/concepts/weights/readings"
        return [browser.post(path).status_code for _ in range(4)]

    with visit(app) as rosa, visit(app) as milo:
        rosa.get("/glossary")
        milo.get("/glossary")
        assert send(rosa) == [303, 303, 303, 429]
        assert send(milo) == [303, 429, 429, 429]


def test_wrong_codes_are_tried_so_often_and_no_more(
    settings: Settings, clock, live_library
):
    few = settings.model_copy(update={"rate_codes": "3/minute"})
    with visit(create_app(few, clock, live_library)) as client:
        tried = [
            client.post("/continue", data={"code": "2222-2222"}).status_code
            for _ in range(5)
        ]

    assert tried == [422, 422, 422, 429, 429]
