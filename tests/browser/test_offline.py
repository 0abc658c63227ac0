"""Without a network: pages once visited, the due cards, and grades that wait."""

import contextlib
import re
import signal
import sqlite3
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.conftest import by_hand, fetch
from tests.browser.server import UNLIMITED, Server
from tests.conftest import TINY

pytestmark = pytest.mark.browser
CONCEPT = "/concepts/weights"
DESK = "/flashcards/offline"
UNREACHABLE = "No answer from the server"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server of all tests here: what works without a network, few pages show."""
    data = tmp_path_factory.mktemp("offline") / "data"
    server = Server(data, TINY, **UNLIMITED)
    yield server
    server.stop()


@pytest.fixture
def server(small: Server) -> Server:
    """The server, which the test before may have stopped."""
    return small if small.runs else small.start()


@pytest.fixture
def device(browser: Browser, server: Server) -> Iterator[BrowserContext]:
    """A browser whose worker runs and that has used cards once."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(server.url)
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    page.goto(f"{server.url}/flashcards")
    wait_for_copies(page, DESK, "/glossary")
    page.close()
    yield context
    context.close()


def wait_for_copies(page: Page, *paths: str) -> None:
    """Wait until the browser has a copy of each of these pages."""
    for _ in range(600):  # a minute, only so that nothing hangs for ever
        # Asked from here: Playwright takes a promise for an answer in its own loop.
        if set(paths) <= set(copies(page)):
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"not kept: {set(paths) - set(copies(page))}")


def copies(page: Page) -> list[str]:
    """The paths of the pages that the browser keeps."""
    kept: list[str] = page.evaluate(
        """async () => (await (await caches.open("pages")).keys())
             .map((request) => new URL(request.url).pathname)"""
    )
    return kept


def log(server: Server) -> list[tuple[str, int, int]]:
    """The reviews of the newest learner as they were written: card, rating, moment."""
    with contextlib.closing(sqlite3.connect(server.data / "headroom.db")) as db:
        return list(
            db.execute(
                "SELECT card, rating, at FROM review"
                " WHERE learner_id = (SELECT max(id) FROM learner) ORDER BY id"
            )
        )


def shown(page: Page) -> str:
    """The card on the desk without a network."""
    leaf = page.locator("[data-showing]:visible")
    return str(leaf.get_attribute("data-showing")).rpartition(".")[0]


def grade(page: Page, key: str) -> tuple[str, int, int]:
    """Review the card on the desk by keyboard: card, rating, moment."""
    card = shown(page)
    page.keyboard.press(" ")
    page.locator("#grades").wait_for()
    expect(page.locator("#show")).to_be_hidden()
    given = page.evaluate("Date.now()")
    page.keyboard.press(key)
    page.locator("#show").wait_for()
    return card, int(key), given


def told(page: Page, words: str) -> None:
    expect(page.locator("#outbox")).to_contain_text(words)


def near(found: list[tuple[str, int, int]], given: list[tuple[str, int, int]]) -> bool:
    """The same reviews in the same order, each at its moment give or take a second."""
    return [f[:2] for f in found] == [g[:2] for g in given] and all(
        abs(f[2] - g[2]) < 1000 for f, g in zip(found, given, strict=True)
    )


def test_pages_and_forms_without_the_server(server: Server, device: BrowserContext) -> None:
    page, form, desk = (device.new_page() for _ in range(3))
    page.goto(server.url + CONCEPT)
    heading = page.get_by_role("heading", level=1).inner_text()
    wait_for_copies(page, CONCEPT)
    assert page.locator("#kept").inner_text() == ""
    form.goto(f"{server.url}/settings")
    form.get_by_label("Name", exact=True).fill("Rosa")
    desk.goto(f"{server.url}/flashcards")
    front = desk.locator(".ask").inner_text()

    server.stop(signal.SIGKILL)

    page.reload()
    what_was_visited_can_be_read_and_says_that_it_is_a_copy(page, heading)
    desk.keyboard.press(" ")  # to ask for an answer leads to the kept cards
    expect(desk).to_have_url(re.compile(f"{DESK}(#answer)?$"))
    expect(desk.locator(".ask:visible")).to_have_text([front])  # one, once the script ran
    page.goto(f"{server.url}/glossary")
    expect(page.get_by_role("heading", level=1)).to_have_text("Glossary")
    page.goto(f"{server.url}/sources")
    expect(page.get_by_role("heading", level=1)).to_have_text(UNREACHABLE)
    form.get_by_role("button", name="Save", exact=True).click()
    expect(form.get_by_text("Go back and send it again")).to_be_visible()
    server.start()
    page.reload()
    expect(page.locator("#kept")).to_be_empty()
    what_was_typed_is_there_and_can_be_sent(form)


def what_was_visited_can_be_read_and_says_that_it_is_a_copy(page: Page, heading: str) -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text(heading)
    expect(page.locator("#kept")).to_have_text(
        re.compile(r"Kept copy of \w+ \d+ at \d+:\d\d\s[AP]M\. The server does not answer\.")
    )


def what_was_typed_is_there_and_can_be_sent(form: Page) -> None:
    form.go_back()
    address = form.url
    expect(form.get_by_label("Name", exact=True)).to_have_value("Rosa")
    form.get_by_role("button", name="Save", exact=True).click()
    expect(form.get_by_text("Saved.", exact=True)).to_be_visible()
    form.goto(address)
    expect(form.get_by_label("Name", exact=True)).to_have_value("Rosa")


def test_cards_reviewed_without_a_network_are_in_the_log_once_each(
    server: Server, device: BrowserContext
) -> None:
    device.set_offline(True)
    # The network process of the browser learns of it later, so that a grade could still be sent.
    device.route("**/reviews", lambda route: route.abort())
    page = device.new_page()
    page.goto(f"{server.url}/flashcards")
    expect(page).to_have_url(re.compile(f"{DESK}$"))
    count = page.locator("[data-showing]").count()

    given = [grade(page, key) for key in "314"]  # what is graded 1 comes back last
    told(page, "3 grades wait in this browser to be sent.")
    page.reload()
    told(page, "3 grades wait")
    given += [grade(page, "2") for _ in range(count - 3)]
    assert len({card for card, *_ in given}) == count > 3
    again = given[1][0]
    assert shown(page) == again
    page.keyboard.press(" ")
    given += [(again, 4, page.evaluate("Date.now()"))]
    page.keyboard.press("4")
    done = page.get_by_role("heading", name="Every card here is done")
    expect(done).to_be_visible()
    page.reload()
    expect(done).to_be_visible()
    told(page, f"{count + 1} grades wait")
    assert log(server) == []

    device.unroute("**/reviews")
    device.set_offline(False)
    told(page, f"{count + 1} grades saved.")
    page.reload()
    page.goto(server.url)

    expect(page.locator("#outbox")).to_be_empty()
    assert near(log(server), given)


@pytest.mark.drill
def test_a_server_that_dies_at_every_answer_gets_each_grade_once(
    server: Server, device: BrowserContext
) -> None:
    page = by_hand(device.new_page())
    page.goto(server.url + DESK)
    # Each grade arrives, but its answer is lost on the way back.
    lost = []
    page.route("**/reviews", lambda route: (lost.append(fetch(route).status), route.abort()))

    given = [grade(page, "3")]
    told(page, "1 grade waits")
    given += [grade(page, "4")]
    told(page, "2 grades wait")
    assert len(log(server)) == 1  # the second waits for an answer to the first
    page.unroute("**/reviews")
    page.get_by_role("button", name="Try now").click()

    told(page, "2 grades saved.")
    assert set(lost) == {204}
    assert near(log(server), given)


@pytest.mark.drill
def test_two_tabs_send_each_grade_once(server: Server, device: BrowserContext) -> None:
    device.set_offline(True)
    one, two = device.new_page(), device.new_page()
    one.goto(server.url + DESK)
    two.goto(server.url + DESK)
    given = []
    for tab, other in ((one, two), (two, one), (one, two)):
        given += [grade(tab, "3")]
        expect(other.locator(f"[data-showing^='{given[-1][0]}.']")).to_be_hidden()
    told(one, "3 grades wait")

    # What got no answer is rightly sent again: the grade has a token.
    answered: list[str] = []
    device.on(
        "requestfinished",
        lambda r: answered.append(r.url) if r.method == "POST" else None,
    )
    device.set_offline(False)
    for page in (one, two):
        page.wait_for_function(
            "() => !Object.keys(localStorage).some((k) => k.startsWith('outbox.'))"
        )

    assert near(log(server), given)
    assert len(answered) == len(set(answered)) == 3


@pytest.mark.drill
def test_a_grade_that_is_refused_stays_on_show_with_the_reason(
    server: Server, device: BrowserContext
) -> None:
    device.set_offline(True)
    page = device.new_page()
    page.goto(server.url + DESK)
    page.evaluate(
        """() => { const now = Date.now;
                   Date.now = () => now() - 40 * 24 * 3600 * 1000; }"""
    )
    grade(page, "3")
    page.evaluate("Date.now = () => performance.timeOrigin + performance.now() | 0")
    page.reload()
    card = grade(page, "4")[0]

    device.set_offline(False)

    told(page, "is more than 30 days ago, so the grade was not counted.")
    assert [row[0] for row in log(server)] == [card]
    page.reload()
    told(page, "is more than 30 days ago")
    page.get_by_role("button", name="Put away").click()
    expect(page.locator("#outbox")).to_be_empty()


@pytest.mark.drill  # kills the server, as the first test does
def test_the_desk_goes_on_without_the_server(server: Server, device: BrowserContext) -> None:
    page = by_hand(device.new_page())
    page.goto(f"{server.url}/flashcards")
    front = page.locator(".ask").inner_text()
    page.keyboard.press(" ")
    page.locator(".grades").wait_for()
    server.stop(signal.SIGKILL)

    page.keyboard.press("3")
    told(page, "1 grade waits")
    page.get_by_role("link", name="Go on without it").click()
    expect(page).to_have_url(re.compile(f"{DESK}$"))
    expect(page.locator(".ask:visible")).not_to_have_text(front)
    grade(page, "4")
    told(page, "2 grades wait")

    server.start()
    page.get_by_role("button", name="Try now").click()
    told(page, "2 grades saved.")
    assert [rating for _, rating, _ in log(server)] == [3, 4]


def test_the_desk_is_laid_anew_when_the_server_is_back(
    server: Server, device: BrowserContext
) -> None:
    page = device.new_page()
    page.goto(f"{server.url}/flashcards")
    front = page.locator(".ask").inner_text()
    page.keyboard.press(" ")
    page.locator(".grades").wait_for()
    device.set_offline(True)
    page.keyboard.press("3")
    told(page, "1 grade waits")

    device.set_offline(False)

    expect(page.locator(".ask")).not_to_have_text(front)
    assert len(log(server)) == 1


def test_somebody_else_at_this_browser_sees_nothing_of_it(
    server: Server, device: BrowserContext
) -> None:
    page = device.new_page()
    page.goto(f"{server.url}/settings")
    page.get_by_label("Name", exact=True).fill("Rosa")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Saved.", exact=True)).to_be_visible()
    page.goto(server.url + "/course")
    wait_for_copies(page, "/course")

    page.goto(f"{server.url}/settings")
    page.get_by_role("checkbox", name="I have access elsewhere").check()
    page.get_by_role("button", name="Leave").click()

    expect(page).to_have_url(f"{server.url}/")
    wait_for_copies(page, "/")
    assert set(copies(page)) == {"/"}
    page.goto(server.url + "/course")
    wait_for_copies(page, "/course")
    device.clear_cookies()  # a browser that lost its key is another learner as well
    page.goto(server.url + "/glossary")
    wait_for_copies(page, "/glossary")
    device.set_offline(True)
    page.goto(server.url + "/course")
    expect(page.get_by_role("heading", level=1)).to_have_text(UNREACHABLE)


def test_without_javascript_the_cards_are_a_list(server: Server, plain_page: Page) -> None:
    plain_page.goto(server.url + DESK)

    expect(plain_page.get_by_text("To grade them you need JavaScript")).to_be_visible()
    plain_page.get_by_text("Answer", exact=True).first.click()
    expect(plain_page.locator(".ans").first).to_be_visible()
    expect(plain_page.get_by_role("button", name="Show the answer")).to_be_hidden()
    expect(plain_page.get_by_text("Every card here is done")).to_be_hidden()


def sit(page: Page, server: Server) -> str:
    """Begin the mock exam and wait until its questions are kept."""
    page.goto(f"{server.url}/exams/short")
    page.get_by_role("button", name="Start the clock").click()
    page.wait_for_url("**/questions/1")
    buttons = page.locator("#palette nav button").all()
    wait_for_copies(page, *(str(button.get_attribute("data-to")) for button in buttons))
    return page.url.rpartition("/questions/")[0]


def test_a_mock_exam_goes_on_without_a_network(server: Server, device: BrowserContext) -> None:
    page = device.new_page()
    sitting = sit(page, server)
    device.set_offline(True)

    given = {}
    for number in (1, 2, 3):
        expect(page).to_have_url(re.compile(f"/questions/{number}$"))
        answer(page)
        told(page, f"{number} answer")
        given[number] = entered(page)
        if number == 1:
            flag(page, given[1])
        page.keyboard.press("j")
    page.wait_for_url(re.compile("/questions/4$"))
    told(page, "3 answers wait in this browser to be sent. The clock goes on.")
    expect(page.locator("#kept")).to_contain_text("Kept copy")
    expect(page.get_by_label("1, kept in this browser")).to_be_visible()
    page.goto(f"{sitting}/questions/2")
    expect(page.locator("#kept")).to_contain_text("Kept copy")
    assert entered(page) == given[2]

    device.set_offline(False)
    told(page, "3 answers saved.")
    expect(page.locator("#palette nav .did")).to_have_count(3)
    expect(page.locator("#palette nav [aria-current]")).to_have_text("2")
    for number, value in given.items():
        page.goto(f"{sitting}/questions/{number}")
        expect(page.locator("#kept")).to_be_empty()
        assert entered(page) == value
        flagged = page.locator("input[name=flag]")
        expect(flagged).to_be_checked(checked=number == 1)
    expect(page.locator("#palette nav .did")).to_have_count(3)


def flag(page: Page, given: str) -> None:
    """Send the answer anew with a flag: the newest is the one that waits."""
    page.get_by_text("Flag", exact=False).first.click()
    told(page, "1 answer waits")
    page.reload()
    assert entered(page) == given
    expect(page.locator("input[name=flag]")).to_be_checked()


def answer(page: Page) -> None:
    """Give some answer, whatever kind of question the paper has drawn here."""
    page.evaluate(
        """() => {
          const fields = [...document.querySelector("main form").elements];
          const [field] = fields.filter(
            ({ name, type }) => /^(answer|place|blank|pair)/.test(name)
              && !["hidden", "submit"].includes(type));
          if (["radio", "checkbox"].includes(field.type)) return field.click();
          if (field.matches("select")) field.selectedIndex = field.length - 1;
          else field.value = "42";
          for (const name of ["input", "change"])
            field.dispatchEvent(new Event(name, { bubbles: true }));
        }"""
    )


def entered(page: Page) -> str:
    """The answer as the form holds it."""
    return str(
        page.evaluate(
            "[...new FormData(document.querySelector('main form'))]"
            ".filter(([name]) => !/^(since|shown|flag|strike|go)$/.test(name))"
            ".map(([name, value]) => `${name}=${value}`).sort().join('&')"
        )
    )
