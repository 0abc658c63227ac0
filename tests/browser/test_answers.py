"""An author looks at the answers of a class of thirty, and accepts a spelling."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from sqlmodel import Session

from app.content.course import load_course
from app.database.engine import make_engine
from app.database.tables import Learner
from tests.authoring.classroom import CLASS, play_class, prepare_course
from tests.browser.conftest import sign_in
from tests.browser.server import UNLIMITED, Server
from tests.browser.test_access import overhang, serious
from tests.conftest import TINY

pytestmark = pytest.mark.browser
BENCH = "/authoring/questions"


@pytest.fixture
def course_folder(tmp_path: Path) -> Path:
    return prepare_course(Path(shutil.copytree(TINY, tmp_path / "course")))


@pytest.fixture
def bench(tmp_path: Path, course_folder: Path) -> Iterator[Server]:
    with Server(tmp_path / "data", course_folder, **UNLIMITED) as running:
        engine = make_engine(f"sqlite:///{running.data / 'headroom.db'}")
        with Session(engine) as db:
            learners = [Learner(key=f"key-{n}", created_at=0) for n in range(CLASS)]
            db.add_all(learners)
            db.flush()
            play_class(db, load_course(course_folder), [row.id or 0 for row in learners])
        engine.dispose()
        yield running


@pytest.mark.drill  # tests/authoring/test_class.py asks the same pages
def test_an_author_finds_the_wrong_key_and_accepts_a_spelling(
    page: Page, bench: Server, course_folder: Path
) -> None:
    sign_in(page, bench)
    page.goto(f"{bench.url}/authoring/mend")
    row = page.get_by_role("row").filter(has_text="k-trade")
    expect(row).to_contain_text("strong learners choose “Memory for compute”")
    expect(page.get_by_role("row").filter(has_text="learners, topics/")).to_have_count(1)

    page.goto(f"{bench.url}{BENCH}/k-phase")
    page.get_by_role("link", name="See the answers").click()
    cells = page.get_by_role("row").filter(has_text="Prefill phase").get_by_role("cell")
    expect(cells.nth(1)).to_have_text("10")
    assert serious(page) == []
    page.set_viewport_size({"width": 360, "height": 740})
    assert overhang(page) <= 0
    page.get_by_role("button", name="Accept “Prefill phase”").click()

    expect(page.get_by_text("is accepted from now on")).to_contain_text("30 answers graded again")
    row = page.get_by_role("row").filter(has_text="Prefill phase")
    expect(row).to_contain_text("Right")
    expect(row.get_by_role("button")).to_have_count(0)
    assert "- [x] `Prefill phase`" in (course_folder / "topics/kv-cache/quiz.md").read_text()
