"""The stage of the tests: a tiny course, an empty database, a clock, the cast."""

import datetime as dt
import fcntl
import gc
import os
import shutil
import tempfile
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

import hypothesis
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import Connection, Engine, event
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlmodel import Session

from app.cli.people import create_author_link
from app.content import file_watcher as watched_files
from app.content.course import Course
from app.content.file_watcher import ParseJob, parse_files, pause_garbage_collection
from app.content.live_courses import LiveCourse
from app.content.parsed_file import ParsedFile
from app.main import create_app, load_assets
from app.settings import Settings
from tests.amounts import EXAMPLES, FACTOR
from tests.databases import Databases, databases_in
from tests.kept import keep_compiled, kept

hypothesis.settings.register_profile("ours", EXAMPLES)
hypothesis.settings.load_profile("ours")
keep_compiled(load_assets().templates)
# What is committed is on the disk, and tests of exams and cards wait for that for about a
# sixth of their time. Memory has no such wait. Containers have little of it; the drills are
# done to a real disk.
_MEMORY = Path("/dev/shm")  # noqa: S108 - pytest makes a folder of its own there
if FACTOR == 1 and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > 2 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))


_Known = dict[tuple[str, str, str], ParsedFile]
SECRET = "of the tests, which nobody guesses"  # noqa: S105 - nothing is kept with it
TINY = Path(__file__).parent / "courses" / "tiny"
FIRST_AID = TINY.parent / "first-aid"
"""A course without computers, in German, some of whose ids are those of the other."""
SCRIPTS = tuple(TINY.parent / name for name in ("arabic", "japanese", "russian"))
"""Courses whose slugs, ids, headings and files have no Latin letters."""
SHIPPED = Path(__file__).resolve().parents[1] / "content"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep what stays for the whole run from being looked for again and again."""
    with pause_garbage_collection():
        found = yield
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    return found


def two_courses(folder: Path) -> Path:
    """Make a content folder with both: `aid` and `sizing`."""
    shutil.copytree(FIRST_AID, folder / "aid")
    shutil.copytree(TINY, folder / "sizing")
    return folder


class Clock:
    """A clock that stands still until a test moves it."""

    def __init__(self) -> None:
        self.now = dt.datetime(2026, 6, 9, 12, 0, tzinfo=dt.UTC)

    def __call__(self) -> dt.datetime:
        return self.now

    def tick(self, **step: float) -> None:
        self.now += dt.timedelta(**step)


@pytest.fixture
def clock() -> Clock:
    """Tuesday 9 June 2026, noon in UTC; `clock.tick(days=1)` moves it."""
    return Clock()


@pytest.fixture(autouse=True)
def _temporary_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo what `headroom serve` sets in this process: where temporary files go."""
    monkeypatch.setattr(tempfile, "tempdir", tempfile.tempdir)
    monkeypatch.setenv("TMPDIR", "noted, so that it is restored")
    monkeypatch.delenv("TMPDIR")


@pytest.fixture(scope="session")
def live_course(tmp_path_factory: pytest.TempPathFactory) -> LiveCourse:
    return LiveCourse(TINY, tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def course(live_course: LiveCourse) -> Course:
    """The tiny course: two domains, two objectives, two topics."""
    return live_course.get_current_course()


@pytest.fixture(scope="session")
def live_shipped() -> LiveCourse:
    """The course that is shipped, parsed once until it or the code changes.

    One process of a run reads it, and the others wait for what it made of it.
    """
    folder = kept("course")
    live = LiveCourse(SHIPPED, folder)
    with folder.with_suffix(".lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        live.get_current_course()
    gc.freeze()
    return live


@pytest.fixture(scope="session")
def shipped(live_shipped: LiveCourse) -> Course:
    return live_shipped.get_current_course()


@pytest.fixture(scope="session")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Databases]:
    """Files of SQLite, or those of the server that the environment names."""
    databases = databases_in(tmp_path_factory.mktemp("database"))
    yield databases
    databases.close()


@pytest.fixture(scope="session")
def _statements() -> Iterator[dict[object, object]]:
    """What SQLAlchemy made of a statement, which all SQLite engines of a run share.

    An engine keeps it by its dialect, and each test has an engine of its own; but what
    a statement is in SQL depends on the kind of dialect alone.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SQLiteDialect_pysqlite, "__eq__", lambda a, b: type(a) is type(b))
        patch.setattr(SQLiteDialect_pysqlite, "__hash__", lambda dialect: hash(type(dialect)))
        yield {}


@pytest.fixture(autouse=True)
def _closed(_statements: dict[object, object]) -> Iterator[None]:
    """Close what a test opened: a connection of one may not be found in another."""
    used: set[Engine] = set()

    def note(connection: Connection) -> None:
        used.add(connection.engine)
        if connection.dialect.name == "sqlite":
            connection.execution_options(compiled_cache=_statements)

    event.listen(Engine, "engine_connect", note)
    yield
    event.remove(Engine, "engine_connect", note)
    for engine in used:
        engine.dispose()


@pytest.fixture
def database(tmp_path: Path, databases: Databases) -> Iterator[str]:
    """The address of a database with every table and no row."""
    with databases.empty(tmp_path) as address:
        yield address


@pytest.fixture(scope="session")
def _settings() -> Settings:
    """What each test sets alike, read once: to read the environment takes long."""
    return Settings(
        content=TINY,
        secret=SECRET,
        # All learners of a test come from one address, and do not pause.
        rate_learners="off",
        rate_writes="off",
        rate_writes_browser="off",
    )


@pytest.fixture
def settings(_settings: Settings, tmp_path: Path, database: str) -> Settings:
    return _settings.model_copy(update={"data": tmp_path, "database_url": database})


@pytest.fixture
def app(settings: Settings, clock: Clock, live_course: LiveCourse) -> FastAPI:
    return create_app(settings, clock, live_course)


@pytest.fixture
def session(app: FastAPI) -> Iterator[Session]:
    """A look into the database beside the app."""
    with Session(app.state.engine) as session:
        yield session


@pytest.fixture(scope="session")
def known_readings() -> _Known:
    return {}


@pytest.fixture
def read_once(monkeypatch: pytest.MonkeyPatch, known_readings: _Known) -> None:
    """What a file says depends on its words, its path and the names it may link.

    Six hundred courses differ from the tiny one in a file or two, whose reading is
    tested in each; all that is said of the files together is found in each course anew.
    """

    def read(jobs: Sequence[ParseJob]) -> list[ParsedFile]:
        keys = [(text, path, names.fingerprint) for text, path, names in jobs]
        new = {key: job for key, job in zip(keys, jobs, strict=True) if key not in known_readings}
        known_readings.update(zip(new, parse_files([*new.values()]), strict=True))
        return [known_readings[key] for key in keys]

    monkeypatch.setattr(watched_files, "parse_files", read)


def visit(app: FastAPI, base: str = "http://testserver") -> TestClient:
    """A new browser without cookies that does not follow redirects.

    It takes answers as they are: to compress them is most of the work for a page.
    """
    plain = {"accept-encoding": "identity"}
    return TestClient(app, base_url=base, headers=plain, follow_redirects=False)


def let_in(client: TestClient) -> TestClient:
    """Sign a browser in as an author, with a link as the command prints it."""
    state = client.app.state
    link = create_author_link(state.engine, "", state.clock())
    token = link.partition("token=")[2]
    assert client.post("/authoring/enter", data={"token": token}).status_code == 303
    return client


@pytest.fixture
def client(app: FastAPI) -> Iterator[TestClient]:
    """A browser without JavaScript, at its first visit."""
    with visit(app) as client:
        yield client


@pytest.fixture
def htmx(app: FastAPI) -> Iterator[TestClient]:
    """A browser of its own whose every request is one of htmx."""
    with visit(app) as client:
        client.headers["HX-Request"] = "true"
        yield client


@pytest.fixture
def rosa(app: FastAPI) -> Iterator[TestClient]:
    """One learner."""
    with visit(app) as client:
        client.get("/unreachable")
        yield client


@pytest.fixture
def milo(app: FastAPI) -> Iterator[TestClient]:
    """Another learner."""
    with visit(app) as client:
        client.get("/unreachable")
        yield client
