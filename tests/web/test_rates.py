"""How often one client may ask for what is costly."""

import pytest
from starlette.exceptions import HTTPException

from app.main import create_app
from app.settings import Settings
from app.web.request_limits import (
    RateLimiter,
    client_address_or_network_of_scope,
    parse_rate_limits,
    rate_limit_kind_of_request_or_empty,
)
from tests.conftest import visit


class Seconds:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def spent(rates: RateLimiter, client: str = "a") -> int:
    """How many a client gets before it is refused."""
    for count in range(100):
        try:
            rates.raise_if_over_limit_else_count("work", client)
        except HTTPException:
            return count
    return 100


def test_a_client_is_refused_until_the_window_ends():
    clock = Seconds()
    rates = RateLimiter({"work": "3/minute"}, clock)

    assert spent(rates) == 3
    assert spent(rates, "b") == 3
    clock.now += 60
    assert spent(rates) == 3


def test_the_narrowest_of_several_rates_counts():
    clock = Seconds()
    rates = RateLimiter({"work": "3/minute;4/day"}, clock)

    assert spent(rates) == 3
    clock.now += 60
    assert spent(rates) == 1


def test_the_refusal_says_how_long_to_wait():
    rates = RateLimiter({"work": "1/hour"}, Seconds())
    rates.raise_if_over_limit_else_count("work", "a")

    with pytest.raises(HTTPException) as refused:
        rates.raise_if_over_limit_else_count("work", "a")

    assert refused.value.status_code == 429
    assert refused.value.headers == {"retry-after": "2600"}
    assert "Wait 2600 seconds" in refused.value.detail


def test_a_browser_that_is_refused_takes_nothing_from_its_address():
    rates = RateLimiter({"work": "4/minute", "work_browser": "2/minute"}, Seconds())

    def ask(browser: str) -> str:
        try:
            rates.raise_if_over_limit_else_count("work", "a", browser)
        except HTTPException as refused:
            return refused.detail.partition(". ")[0]
        return "admitted"

    assert [ask("one") for _ in range(9)].count("admitted") == 2
    assert "from your browser" in ask("one")
    assert [ask("two"), ask("three")] == ["admitted", "admitted"]
    assert "from your address" in ask("four")


def test_a_browser_without_a_key_counts_for_its_address_alone():
    rates = RateLimiter({"work": "4/minute", "work_browser": "2/minute"}, Seconds())

    assert spent(rates) == 4


def test_who_throws_the_cookie_away_stops_no_browser_of_the_same_address():
    rates = RateLimiter({"work": "4/minute", "work_browser": "2/minute"}, Seconds())

    assert spent(rates) == 4
    for browser in ("one", "two"):
        rates.raise_if_over_limit_else_count("work", "a", browser)
        rates.raise_if_over_limit_else_count("work", "a", browser)
    assert rates.seconds_until_allowed("work", "a", "three") > 0


def test_the_wait_is_that_of_the_longest_window_that_is_full():
    rates = RateLimiter({"work": "1/minute;1/hour"}, Seconds())

    assert rates.seconds_until_allowed("work", "a") == 0
    rates.raise_if_over_limit_else_count("work", "a")
    assert rates.seconds_until_allowed("work", "a") == 2600
    assert rates.seconds_until_allowed("work", "b") == 0


def test_off_means_no_limit():
    assert spent(RateLimiter({"work": "off"}, Seconds())) == 100


@pytest.mark.parametrize("words", ["", "60", "0/minute", "5/week", "5/minute,6/hour"])
def test_a_rate_that_cannot_be_read_is_refused(words: str):
    with pytest.raises(ValueError, match="60/minute, or off"):
        parse_rate_limits(words)


@pytest.mark.parametrize(
    ("request_", "kind"),
    [
        (("GET", "/calculators/kv-cache/result", b""), "estimates"),
        (("POST", "/api/v1/estimates/kv-cache", b""), "estimates"),
        (("GET", "/calculators/compare", b"a=1"), "comparisons"),
        (("GET", "/search", b"q=mig"), "searches"),
        (("GET", "/search", b""), ""),
        (("GET", "/flashcards/deck", b"q=mig"), "searches"),
        (("GET", "/flashcards/deck", b""), ""),
        (("POST", "/settings/cards", b""), "imports"),
        (("GET", "/settings/cards", b""), ""),
        (("GET", "/settings/cards.apkg", b"newest=1"), "exports"),
        (("GET", "/settings/export", b""), "exports"),
        (("GET", "/calendar/key.ics", b""), "calendars"),
        (("GET", "/", b""), ""),
    ],
)
def test_costly_work_is_known_by_its_address(request_, kind: str):
    assert rate_limit_kind_of_request_or_empty(*request_) == kind


def test_a_network_of_ipv6_is_one_client():
    def of(host: str) -> str:
        return client_address_or_network_of_scope({"type": "http", "client": (host, 1)})

    assert of("2001:db8::1") == of("2001:db8::2") != of("2001:db8:1::1")
    assert of("10.0.0.1") != of("10.0.0.2")


def test_who_searches_too_often_is_told_to_wait(settings: Settings, clock, live_course):
    few = settings.model_copy(update={"rate_searches": "2/hour"})
    with visit(create_app(few, clock, live_course)) as client:
        client.get("/search")
        answers = [client.get(f"/search?q=word{n}") for n in range(3)]

    assert [a.status_code for a in answers] == [200, 200, 429]
    assert "more than 2 times in one hour" in answers[2].text
    assert int(answers[2].headers["retry-after"]) <= 3600


def test_so_many_learners_begin_from_one_address(settings: Settings, clock, live_course):
    few = settings.model_copy(update={"rate_learners": "2/hour"})
    app = create_app(few, clock, live_course)
    answers = []
    for _ in range(3):
        with visit(app) as browser:
            answers.append(browser.post("/concepts/weights/readings"))

    assert [a.status_code for a in answers] == [303, 303, 429]
    assert "from your address" in answers[2].text


def test_a_first_form_with_a_mistake_is_no_new_learner(settings: Settings, clock, live_course):
    few = settings.model_copy(update={"rate_learners": "2/hour"})
    app = create_app(few, clock, live_course)

    def begin() -> int:
        with visit(app) as browser:
            browser.get("/settings")
            note = {"section": "nowhere", "words": "Words"}
            return browser.post("/concepts/weights/notes", data=note).status_code

    assert [begin() for _ in range(5)] == [422] * 5
    with visit(app) as browser:
        browser.get("/settings")
        assert browser.post("/concepts/weights/readings").status_code == 303


def test_forms_are_counted_by_address_and_by_browser(settings: Settings, clock, live_course):
    few = settings.model_copy(update={"rate_writes": "5/hour", "rate_writes_browser": "3/hour"})
    app = create_app(few, clock, live_course)

    def send(browser) -> list[int]:
        path = "/concepts/weights/readings"
        return [browser.post(path).status_code for _ in range(4)]

    with visit(app) as rosa, visit(app) as milo:
        rosa.get("/glossary")
        milo.get("/glossary")
        assert send(rosa) == [303, 303, 303, 429]
        assert send(milo) == [303, 303, 429, 429]


@pytest.mark.parametrize("limit", [{"rate_codes": "3/minute"}, {"rate_codes_browser": "3/minute"}])
def test_wrong_codes_are_tried_so_often_and_no_more(
    settings: Settings, clock, live_course, limit: dict[str, str]
):
    few = settings.model_copy(update=limit)
    with visit(create_app(few, clock, live_course)) as client:
        client.get("/continue")
        tried = [client.post("/continue", data={"code": "2222-2222"}) for _ in range(5)]

    assert [answer.status_code for answer in tried] == [422, 422, 422, 429, 429]
    seconds = int(tried[-1].headers["retry-after"])
    assert 1 <= seconds <= 60
    assert f"Wait {seconds} seconds" in tried[-1].text


class TestClassBehindOneAddress:
    """Thirty browsers, all within one minute, with the limits as they come."""

    SIZE = 30

    @pytest.fixture
    def browsers(self, settings: Settings, clock, live_course):
        limit = Settings.model_fields["rate_learners"].default  # the one that tests lift
        asked = settings.model_copy(update={"rate_learners": limit})
        app = create_app(asked, clock, live_course)
        app.state.rates._clock = Seconds()  # the minute does not end meanwhile
        browsers = [visit(app) for _ in range(self.SIZE)]
        for browser in browsers:
            browser.get("/continue")
        yield browsers
        app.state.engine.dispose()

    def test_all_of_several_classes_start(self, browsers):
        for _ in range(3):
            for browser in browsers:
                browser.cookies.clear()
                begun = browser.post("/concepts/weights/readings")
                assert begun.status_code == 303

    def test_all_send_a_file(self, browsers):
        for browser in browsers:
            sent = browser.post("/settings/cards", files={"file": ("a.apkg", b"x")})
            assert sent.status_code == 422

    def test_one_who_guesses_codes_or_sends_files_stops_nobody_else(self, browsers):
        *others, guesser = browsers
        wrong = {"code": "2222-2222"}
        guesses = [guesser.post("/continue", data=wrong) for _ in range(100)]
        file = {"file": ("a.apkg", b"x")}
        files = [guesser.post("/settings/cards", files=file) for _ in range(100)]

        assert {answer.status_code for answer in (*guesses, *files)} == {422, 429}
        for browser in others:
            assert browser.post("/continue", data=wrong).status_code == 422
            assert browser.post("/settings/cards", files=file).status_code == 422

    @pytest.mark.drill  # sends two thousand requests
    def test_a_stranger_without_cookies_keeps_nobody_from_starting(self, browsers):
        *others, stranger = browsers

        def send(path: str, **words: object) -> set[int]:
            statuses = set()
            for _ in range(1300):
                stranger.cookies.clear()
                statuses.add(stranger.post(path, **words).status_code)
                if 429 in statuses:
                    break
            return statuses

        wrong = {"code": "2222-2222"}
        assert 429 in send("/continue", data=wrong)
        assert 429 in send("/concepts/weights/readings")
        for browser in others:
            assert browser.post("/continue", data=wrong).status_code == 422
            assert browser.post("/concepts/weights/readings").status_code == 303


def test_no_default_keeps_anybody_out_for_longer_than_an_hour(settings: Settings):
    defaults = [
        field.default for name, field in Settings.model_fields.items() if name.startswith("rate_")
    ]

    assert len(defaults) == len(settings.rate_settings_by_kind)
    assert max(rate.window_seconds for one in defaults for rate in parse_rate_limits(one)) <= 3600
