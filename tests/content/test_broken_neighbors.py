"""Six hundred broken items: none stops a page of its neighbors, or the server."""

import os
import re
import time
from pathlib import Path
from typing import Any

import pytest

from app.content.course import Course
from app.content.live_courses import LiveCourse
from app.main import create_app
from app.settings import Settings
from tests.amounts import FACTOR, sample
from tests.conftest import Clock, visit
from tests.content.test_broken_items import CASES as BROKEN
from tests.content.test_broken_items import KINDS, edit, lay
from tests.content.test_cases import CASES as FILES
from tests.content.test_cases import lay_out, put, put_back

Item = tuple[str, dict[str, Any] | Path]
ITEMS: list[Item] = [*BROKEN, *(("", path) for path in FILES)]
SOUND = Path(__file__).parents[1] / "courses" / "tiny" / "topics"
NEIGHBORS = frozenset({"weights", "kv-cache"})
PAGES = ("/", "/healthz")
CODE = re.compile(r"[EW]\d\d")


def names(item: Item) -> str:
    kind, case = item
    return case.stem if isinstance(case, Path) else f"{kind}: {case['cause']}"


def break_in(item: Item, course_folder: Path) -> set[str]:
    """Break a course in one way; the topics that are not broken."""
    kind, case = item
    if isinstance(case, Path):
        put(case, course_folder)
    else:
        files = KINDS[kind].get("files", {})
        lay(files, course_folder)
        edit(files, case["edits"], course_folder)
    return {
        slug
        for slug in NEIGHBORS
        if all(
            (course_folder / "topics" / slug / file.name).read_bytes() == file.read_bytes()
            for file in (SOUND / slug).iterdir()
            if (course_folder / "topics" / slug / file.name).is_file()
        )
        and len(list((course_folder / "topics" / slug).glob("*.md"))) == 3
    }


def age(course_folder: Path) -> None:
    """Make what was just written as old as what an editor saved a second ago.

    A file that is younger may still be written to, and is read for each page anew.
    """
    saved = time.time_ns() - 10**9
    for file in course_folder.rglob("*"):
        if file.is_file() and file.stat().st_mtime_ns > saved:
            os.utime(file, ns=(saved, saved))


def served(course: Course, slugs: set[str]) -> set[str]:
    """Every page, question and card of some topics."""
    every = [*course.questions.values(), *course.cards.values()]
    return (slugs & set(course.topics)) | {i.id for i in every if i.topic in slugs}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Course:
    course_folder = tmp_path_factory.mktemp("sound") / "course"
    lay_out(course_folder)
    return LiveCourse(course_folder).get_current_course()


def test_there_are_six_hundred_of_which_the_check_tells_something() -> None:
    told = [case for _, case in ITEMS if isinstance(case, Path) or case["told"]]

    assert len(told) >= 600


def representatives() -> list[Item]:
    """Some of an item for each rule and one of each kind that breaks none; drills: all."""
    if FACTOR > 1:
        return ITEMS
    first: dict[str, Item] = {}
    for kind, case in ITEMS:
        told = case.stem if isinstance(case, Path) else case["told"]
        for broken in CODE.findall(told) or [kind]:
            first.setdefault(broken, (kind, case))
    return sample([item for item in ITEMS if item in first.values()], 40, "neighbors")


@pytest.mark.drawn
@pytest.mark.usefixtures("read_once")
@pytest.mark.parametrize("kind", sorted({kind for kind, _ in ITEMS}))
def test_its_neighbors_are_served_from_the_start_and_while_it_breaks(
    kind: str, sound: Course, tmp_path: Path
) -> None:
    course_folder = tmp_path / "course"
    before = lay_out(course_folder)
    running, lost = LiveCourse(course_folder), []
    for item in (item for item in representatives() if item[0] == kind):
        whole = break_in(item, course_folder)
        age(course_folder)
        for course in (
            LiveCourse(course_folder).get_current_course(),
            running.get_current_course(),
        ):
            failed = [p for p in course.problems if "Headroom failed" in p.message]
            if failed or served(course, whole) != served(sound, whole):
                lost.append((names(item), failed))
        put_back(before, course_folder)

    assert lost == []


@pytest.mark.drawn
@pytest.mark.usefixtures("read_once")
def test_no_page_of_a_running_server_stops(
    settings: Settings, clock: Clock, tmp_path: Path
) -> None:
    """Some of its pages for each item in turn; `make drills`: all."""
    course_folder = tmp_path / "course"
    before = lay_out(course_folder)
    app = create_app(settings.model_copy(update={"content": course_folder}), clock)
    stopped = []
    with visit(app) as client:
        for nth, item in enumerate(representatives()):
            whole = break_in(item, course_folder)
            age(course_folder)
            pages = [*PAGES, *(f"/concepts/{slug}" for slug in sorted(whole))]
            if FACTOR == 1:
                pages = pages[nth % len(pages) :: len(PAGES)]
            answers = {page: client.get(page).status_code for page in pages}
            stopped += [(names(item), a) for a in answers.items() if a[1] >= 400]
            put_back(before, course_folder)
    app.state.engine.dispose()

    assert stopped == []
