"""The disk turns read-only under a running server, as disks do after an error."""

import itertools
import os
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from app.database.file_guards import FileSystemJournalProbe
from tests.amounts import FACTOR
from tests.browser.server import UNLIMITED, Server
from tests.conftest import TINY
from tests.databases import ABOUT_SQLITE
from tests.drills.failing_disk import FailingDisk, made
from tests.drills.learners import (
    Learners,
    assert_nothing_lost_or_doubled,
    wait_until,
)

pytestmark = ABOUT_SQLITE
RECORD = 4120  # bytes, as much as SQLite writes for a page


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[FailingDisk]:
    disk = made(tmp_path)
    yield disk
    disk.leave()


def test_a_disk_that_turns_read_only_ends_writes_and_loses_none(disk: FailingDisk):
    server = Server(disk.folder / "data", TINY, backups="off", **UNLIMITED)
    with server, Learners(server.url) as learners:
        learners.wait_for(more=20)

        disk.fail()
        wait_until(lambda: learners.all_refused)
        assert learners.refused <= {500, 503}
        known = len(learners.acknowledged)
        with httpx.Client(base_url=server.url, timeout=30) as visitor:
            assert visitor.get("/concepts/weights").status_code == 200
            ready = visitor.get("/readyz")
            assert ready.status_code == 503
            assert "ead-only" in ready.text
            assert visitor.get("/healthz").status_code == 200
        assert len(learners.acknowledged) == known

        server.stop()
        disk.mend()
        server.start()
        learners.wait_for(more=20)
    kept = f"sqlite:///{server.data / 'headroom.db'}"
    assert_nothing_lost_or_doubled(learners, kept)


def write(folder: Path, proved: list[int]) -> None:
    """Write one record after the other, each synced and then proved, to the end."""
    disk = FileSystemJournalProbe(folder)
    descriptor = os.open(folder / "records", os.O_RDWR | os.O_CREAT)
    try:
        for number in itertools.count():
            record = number.to_bytes(8, "little").ljust(RECORD, b"x")
            os.pwrite(descriptor, record, number * RECORD)
            os.fdatasync(descriptor)
            disk.raise_if_journal_lost()
            proved.append(number)
    except OSError:
        os.close(descriptor)


def kept(folder: Path) -> list[int]:
    """The numbers of all records that are there in one piece."""
    content = (folder / "records").read_bytes()
    places = range(0, len(content) - RECORD + 1, RECORD)
    return [int.from_bytes(content[place : place + 8], "little") for place in places]


@pytest.mark.parametrize("seed", range(2 * FACTOR))
def test_what_was_proved_after_a_sync_is_on_the_disk(disk: FailingDisk, seed: int):
    proved: list[int] = []
    writer = threading.Thread(target=write, args=(disk.folder, proved))
    writer.start()
    wait_until(lambda: proved)
    time.sleep(random.Random(seed).uniform(0, 0.2))  # noqa: S311 - no secret

    disk.fail()
    writer.join()
    disk.mend()

    assert kept(disk.folder)[: len(proved)] == proved
