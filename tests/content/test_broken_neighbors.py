"""Six hundred broken items: none stops a page of its neighbors, or the server."""

from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.config import Settings
from app.content.live.library import Library, LiveLibrary
from app.main import create_app
from tests.conftest import Clock
from tests.content.test_broken_items import CASES as BROKEN
from tests.content.test_broken_items import KINDS, broken, lay
from tests.content.test_cases import CASES as FILES
from tests.content.test_cases import lay_out

Item = tuple[str, dict[str, Any] | Path]
ITEMS: list[Item] = [*BROKEN, *(("", path) for path in FILES)]
SOUND = Path(__file__).parents[1] / "courses" / "tiny" / "topics"
NEIGHBORS = frozenset({"weights", "kv-cache"})
PAGES = ("/", "/healthz")


def names(item: Item) -> str:
    kind, case = item
    return case.stem if isinstance(case, Path) else f"{kind}: {case['cause']}"


def break_in(item: Item, course: Path) -> set[str]:
    """Break a course in one way; the topics that are not broken."""
    kind, case = item
    if isinstance(case, Path):
        lay_out(case, course)
    else:
        broken(KINDS[kind].get("files", {}), case["edits"], course)
    return {
        slug
        for slug in NEIGHBORS
        if all(
            (course / "topics" / slug / file.name).read_bytes() == file.read_bytes()
            for file in (SOUND / slug).iterdir()
            if (course / "topics" / slug / file.name).is_file()
        )
        and len(list((course / "topics" / slug).glob("*.md"))) == 3
    }


def become(course: Path, other: Path) -> None:
    """Make a course like another, file by file, as an editor would."""
    wanted = {file.relative_to(other) for file in other.rglob("*") if file.is_file()}
    for file in [*course.rglob("*")]:
        if file.is_file() and file.relative_to(course) not in wanted:
            file.unlink()
    for name in wanted:
        data = (other / name).read_bytes()
        if not (course / name).is_file() or (course / name).read_bytes() != data:
            (course / name).parent.mkdir(parents=True, exist_ok=True)
            (course / name).write_bytes(data)


def served(library: Library, slugs: set[str]) -> set[str]:
    """Every page, question and card of some topics."""
    every = [*library.questions.values(), *library.cards.values()]
    return (slugs & set(library.topics)) | {i.id for i in every if i.topic in slugs}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where files that all the courses have are kept as they were read."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Library:
    course = tmp_path_factory.mktemp("sound") / "course"
    lay({}, course)
    return LiveLibrary(course).current()


def test_there_are_six_hundred_of_which_the_check_tells_something() -> None:
    told = [case for _, case in ITEMS if isinstance(case, Path) or case["told"]]

    assert len(told) >= 600


@pytest.mark.parametrize("item", ITEMS, ids=names)
def test_its_neighbors_are_served_from_the_start(
    item: Item, sound: Library, cache: Path, tmp_path: Path
) -> None:
    whole = break_in(item, tmp_path / "course")

    library = LiveLibrary(tmp_path / "course", cache).current()

    assert served(library, whole) == served(sound, whole)
    assert not [p for p in library.problems if "Headroom failed" in p.message]


def test_no_page_of_a_running_server_stops(
    settings: Settings, clock: Clock, tmp_path: Path
) -> None:
    course = tmp_path / "course"
    lay({}, course)
    app = create_app(settings.model_copy(update={"content": course}), clock)
    stopped = []
    with TestClient(app, follow_redirects=False) as client:
        for number, item in enumerate(ITEMS):
            other = tmp_path / f"course-{number}"
            whole = break_in(item, other)
            become(course, other)
            pages = [*PAGES, *(f"/concepts/{slug}" for slug in whole)]
            answers = {page: client.get(page).status_code for page in pages}
            stopped += [(names(item), a) for a in answers.items() if a[1] >= 400]
    app.state.engine.dispose()
    app.state.pages.close()

    assert stopped == []
