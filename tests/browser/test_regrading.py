"""A mended key on the bench: seen, confirmed and counted, with and without scripts."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.amounts import each_of_sample
from tests.browser.conftest import sign_in
from tests.browser.server import UNLIMITED, Server
from tests.browser.test_access import overhang, serious
from tests.conftest import TINY

pytestmark = pytest.mark.browser
ITEM = "k-trade"


@pytest.fixture
def course_folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(TINY, tmp_path / "course"))


@pytest.fixture
def bench(tmp_path: Path, course_folder: Path) -> Iterator[Server]:
    with Server(tmp_path / "data", course_folder, **UNLIMITED) as running:
        yield running


def mend(course_folder: Path) -> None:
    file = course_folder / "topics/kv-cache/quiz.md"
    text = file.read_text().replace("[x] Memory for", "[ ] Memory for")
    file.write_text(text.replace("[ ] Accuracy for", "[x] Accuracy for"))


def look_until(page: Page, address: str, words: str, times: int) -> None:
    """Open a page of the bench until it has `words` so many times.

    Where the new statistics take longer than half a second, which they do on a busy
    machine, a page shows the last ones for a minute.
    """
    for _ in range(300):  # only so that nothing hangs for ever
        page.goto(address)
        if page.get_by_text(words).count() == times:
            return
        page.wait_for_timeout(500)
    expect(page.get_by_text(words)).to_have_count(times)


@each_of_sample("name", ["page", "plain_page"], 1)
def test_an_author_looks_and_confirms(
    request: pytest.FixtureRequest, name: str, bench: Server, course_folder: Path
) -> None:
    page: Page = request.getfixturevalue(name)
    sign_in(page, bench)
    page.goto(f"{bench.url}/quiz/kv-cache/{ITEM}")
    page.get_by_label("Accuracy for speed").check()
    page.get_by_role("button", name="Think so").click()
    expect(page.get_by_text("Not right.")).to_be_visible()
    mend(course_folder)

    question = f"{bench.url}/authoring/questions/{ITEM}"
    look_until(page, question, "would score differently", 1)
    page.get_by_role("link", name="Grade it again").click()
    row = page.get_by_role("row", name="0 to 1")
    expect(row.get_by_role("cell").first).to_have_text("1")
    if name == "page":
        assert serious(page) == []
        page.set_viewport_size({"width": 360, "height": 740})
        assert overhang(page) <= 0
    page.get_by_role("button", name="Grade 1 answer again").click()

    expect(page.get_by_text("1 answer graded again.")).to_be_visible()
    look_until(page, question, "would score differently", 0)
