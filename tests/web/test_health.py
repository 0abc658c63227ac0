"""/healthz says that the process is alive, /readyz whether learners can be served."""

import contextlib
import os
import shutil
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import create_engine, text

from app.content.live_courses import CourseRegistry, LiveCourse
from app.database.quotas import LEAST_FREE, LEAST_FREE_TO_SERVE
from app.main import create_app
from app.settings import Settings
from app.web.monitoring import ReadinessChecks, check_disk
from tests.conftest import TINY, visit
from tests.databases import ABOUT_SQLITE, NAME, SERVER
from tests.loops import outcome

ONLY_ROOT_MAY_MOUNT = pytest.mark.skipif(os.geteuid() != 0, reason="mounts a disk")


class NoCourse(LiveCourse):
    """A course that cannot be read, in a way that nobody foresaw."""

    def get_recently_checked_course(self):
        return None

    def get_current_course(self):
        raise OverflowError("cannot convert float infinity to integer")


class SlowCourse(LiveCourse):
    """A course that notes when it is read for the first time."""

    reads = 0

    def get_current_course(self):
        self.reads += 1
        return super().get_current_course()


def test_courses_are_read_before_the_server_is_open(tmp_path: Path) -> None:
    live_course = SlowCourse(TINY, tmp_path / "cache")
    with TestClient(create_app(Settings(data=tmp_path), live_course=live_course)):
        assert live_course.reads > 0


@pytest.fixture
def without_course(settings: Settings, clock, tmp_path: Path) -> Iterator[TestClient]:
    app = create_app(settings, clock, NoCourse(tmp_path))
    yield TestClient(app, raise_server_exceptions=False)
    app.state.engine.dispose()


def failed(client: TestClient) -> str:
    """What /readyz says is wrong."""
    answer = client.get("/readyz")
    assert answer.status_code == 503
    return "\n".join(line for line in answer.text.splitlines() if "FAILED" in line)


def test_a_server_that_is_well_says_so_in_one_line_for_each_check(client: TestClient):
    answer = client.get("/readyz")

    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.headers["cache-control"] == "no-store"
    database, disk, content = answer.text.splitlines()
    assert database == "database: ok"
    assert disk == "disk: ok"
    assert content == "content: ok, 2 topics"


def test_who_watches_gets_no_cookie_and_may_ask_for_the_head(client: TestClient):
    assert "set-cookie" not in client.get("/healthz").headers
    assert client.head("/healthz").status_code == 200
    assert client.head("/readyz").status_code == 200


def test_other_methods_are_refused_as_anywhere(client: TestClient):
    assert client.post("/readyz").status_code == 405


def test_a_course_that_cannot_be_read_leaves_the_process_alive(
    without_course: TestClient,
):
    assert without_course.get("/healthz").text == "well"
    assert failed(without_course).startswith(
        "content: FAILED. The course cannot be read. Run `headroom check`"
    )


@ABOUT_SQLITE
def test_a_process_is_alive_without_asking_the_database(app: FastAPI, client: TestClient):
    Path(app.state.engine.url.database).unlink()

    assert client.get("/healthz").text == "well"


@ABOUT_SQLITE
def test_a_database_that_another_process_keeps_locked_is_named(
    client: TestClient, settings: Settings
):
    with contextlib.closing(sqlite3.connect(settings.data / NAME)) as other:
        other.execute("BEGIN IMMEDIATE")

        assert "keeps the database locked" in failed(client)


@ABOUT_SQLITE
def test_a_database_that_others_write_to_without_a_pause_can_be_written(
    client: TestClient, settings: Settings
):
    over = threading.Event()

    def write_on() -> None:
        with contextlib.closing(sqlite3.connect(settings.data / NAME)) as other:
            other.isolation_level = None
            while not over.is_set():
                other.execute("BEGIN IMMEDIATE")
                other.execute("CREATE TABLE more (one)")
                other.execute("DROP TABLE more")
                time.sleep(0.3)
                other.execute("COMMIT")

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write_on)
        answer = client.get("/readyz")
        over.set()
        writing.result()

    assert answer.status_code == 200, answer.text


@ABOUT_SQLITE
def test_the_check_keeps_no_lock_and_writes_nothing(client: TestClient, settings: Settings):
    with contextlib.closing(sqlite3.connect(settings.data / NAME)) as other:
        (before,) = other.execute("PRAGMA data_version").fetchone()
        assert client.get("/readyz").status_code == 200

        other.execute("BEGIN IMMEDIATE").connection.rollback()
        assert other.execute("PRAGMA data_version").fetchone() == (before,)


@ABOUT_SQLITE
def test_a_database_file_that_is_gone_is_named_and_not_made_anew(
    client: TestClient, settings: Settings
):
    (settings.data / NAME).unlink()

    assert "The database file is gone." in failed(client)
    assert not (settings.data / NAME).exists()


@ABOUT_SQLITE
def test_a_data_folder_that_is_gone_is_named(client: TestClient, settings: Settings):
    moved = settings.data.with_name("moved")
    settings.data.rename(moved)
    said = failed(client)
    moved.rename(settings.data)

    assert "The database file is gone." in said
    assert "The data folder cannot be written" in said


@ABOUT_SQLITE
def test_a_database_file_that_was_replaced_is_named(client: TestClient, settings: Settings):
    path = settings.data / NAME
    shutil.copy(path, settings.data / "copy.db")
    (settings.data / "copy.db").replace(path)

    assert "The database file was replaced." in failed(client)


@ABOUT_SQLITE
def test_a_database_file_that_was_emptied_is_damaged(client: TestClient, settings: Settings):
    path = settings.data / NAME
    whole = path.read_bytes()
    path.write_bytes(b"no database" * 1000)
    said = failed(client)
    path.write_bytes(whole)  # the app is closed after the test

    assert "The database is damaged." in said


@pytest.mark.skipif(not SERVER, reason="is about PostgreSQL")
def test_a_server_that_takes_no_writes_is_named(client: TestClient, settings: Settings):
    database = settings.database_url_or_default.rpartition("/")[2]
    engine = create_engine(settings.database_url_or_default, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(
            text(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
        )
    engine.dispose()

    assert "takes no writes" in failed(client)


@pytest.mark.skipif(not SERVER, reason="is about PostgreSQL")
def test_a_server_that_is_down_is_named_without_its_address(settings: Settings, clock, live_course):
    gone = settings.model_copy(
        update={"database_url": "postgresql+psycopg://study:hush@127.0.0.1:9/study"}
    )
    app = create_app(gone, clock, live_course)
    said = failed(TestClient(app))
    app.state.engine.dispose()

    assert "The database server gives no answer." in said
    assert "hush" not in said
    assert "127.0.0.1" not in said


def test_a_nearly_full_disk_is_named_without_what_is_left(tmp_path: Path):
    check = check_disk((tmp_path,), min_free_bytes=10**18)

    words = "The disk is nearly full: have 1,000,000,000,000 MB free."
    assert check.problem == words


@pytest.mark.parametrize("free", [LEAST_FREE_TO_SERVE - 1, LEAST_FREE_TO_SERVE])
def test_room_that_a_full_disk_asks_for_is_enough_for_cards(
    tmp_path: Path, free: int, monkeypatch: pytest.MonkeyPatch
):
    usage = shutil.disk_usage("/")._replace(free=free)
    monkeypatch.setattr("app.web.monitoring.shutil.disk_usage", lambda _: usage)

    words = f"The disk is nearly full: have {LEAST_FREE // 1_000_000} MB free."
    assert check_disk((tmp_path,)).problem == words * (free < LEAST_FREE_TO_SERVE)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    size = ["-o", "size=200k"]
    subprocess.run(["mount", "-t", "tmpfs", *size, "tmpfs", disk], check=True)
    yield disk
    subprocess.run(["umount", disk], check=True)


@ONLY_ROOT_MAY_MOUNT
def test_a_full_disk_is_named(small_disk: Path):
    assert check_disk((small_disk,), min_free_bytes=0).problem == ""
    (small_disk / "rest").write_bytes(bytes(190 * 1024))

    problem = check_disk((small_disk,), min_free_bytes=0).problem

    assert problem.startswith("The data folder cannot be written (No space left")


@ONLY_ROOT_MAY_MOUNT
def test_a_disk_that_became_read_only_is_named(small_disk: Path):
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)

    assert "Read-only file system" in check_disk((small_disk,), min_free_bytes=0).problem


def test_asked_often_it_looks_once(app: FastAPI, live_course, tmp_path: Path):
    looked = []

    class Counted(LiveCourse):
        def get_current_course(self):
            looked.append(1)
            return live_course.get_current_course()

    courses = CourseRegistry({"": Counted(tmp_path)})
    storage = app.state.storage
    readiness = ReadinessChecks(app.state.engine, tmp_path, courses, storage)

    async def many() -> None:
        for _ in range(20):
            await readiness.get_recent_results()

    outcome(many())

    assert len(looked) == 1


def test_the_disk_is_written_to_every_ten_seconds_at_most(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
):
    written: list[Path] = []
    now = [1000.0]
    monkeypatch.setattr("app.web.monitoring._raise_if_not_writable", written.append)
    monkeypatch.setattr("app.web.monitoring.time.monotonic", lambda: now[0])

    counts = []
    for _ in range(25):
        assert client.get("/readyz").status_code == 200
        counts.append(len(written))
        now[0] += 1

    assert counts == [counts[0]] * 10 + [2 * counts[0]] * 10 + [3 * counts[0]] * 5
    assert counts[0] > 0


def test_a_database_that_lacks_tables_is_named(app: FastAPI, client: TestClient):
    with app.state.engine.begin() as connection:
        connection.execute(text("DROP TABLE note"))

    assert "database: FAILED. The database lacks tables." in failed(client)


def test_the_check_takes_no_connection_of_the_requests_for_long(app: FastAPI):
    with visit(app) as client:
        held = app.state.engine.pool.checkedout()
        assert client.get("/readyz").status_code == 200

        assert app.state.engine.pool.checkedout() == held
