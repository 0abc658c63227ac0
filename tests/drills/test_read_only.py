"""The disk turns read-only under a running server, as disks do after an error."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.browser.server import Server
from tests.conftest import TINY
from tests.databases import ABOUT_SQLITE
from tests.drills.learners import (
    Learners,
    assert_nothing_lost_or_doubled,
    wait_until,
)

pytestmark = ABOUT_SQLITE


class Disk:
    """A file system of its own in a file, which turns read-only after an error."""

    def __init__(self, image: Path, folder: Path) -> None:
        self._image, self.folder = image, folder
        _run("truncate", "-s", "64M", str(image))
        _run("mkfs.ext4", "-q", str(image))

    def mount(self) -> None:
        """Let it be seen under its folder; raises CalledProcessError."""
        options = "loop,errors=remount-ro"
        _run("mount", "-o", options, str(self._image), str(self.folder))

    def fail(self) -> None:
        """Have the kernel find an error in it."""
        device = _run("findmnt", "-n", "-o", "SOURCE", str(self.folder)).strip()
        trigger = Path("/sys/fs/ext4", Path(device).name, "trigger_fs_error")
        trigger.write_text("1")

    def mend(self) -> None:
        """Have it checked, as at the next start of a machine, and mounted again."""
        _run("umount", str(self.folder))
        subprocess.run(["fsck.ext4", "-p", str(self._image)], check=False)
        self.mount()


def _run(*words: str) -> str:
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return done.stdout


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    if os.geteuid() or not (shutil.which("mkfs.ext4") and shutil.which("findmnt")):
        pytest.skip("only root, with the programs of ext4, can make such a disk")
    folder = tmp_path / "disk"
    folder.mkdir()
    disk = Disk(tmp_path / "image", folder)
    try:
        disk.mount()
    except subprocess.CalledProcessError:
        pytest.skip("this system mounts no file")
    yield disk
    _run("umount", "-l", str(folder))


def test_a_disk_that_turns_read_only_ends_writes_and_loses_none(disk: Disk):
    server = Server(disk.folder / "data", TINY, backups="off", rate_learners="off")
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
