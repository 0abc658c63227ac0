"""A disk that fails, for those who may make one."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest


class FailingDisk:
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

    def leave(self) -> None:
        """Take it away, also from under a program that still has it open."""
        _run("umount", "-l", str(self.folder))


def _run(*words: str) -> str:
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return done.stdout


def made(folder: Path) -> FailingDisk:
    """Such a disk, mounted under a new folder; skips the test where nobody may."""
    if os.geteuid() or not (shutil.which("mkfs.ext4") and shutil.which("findmnt")):
        pytest.skip("only root, with the programs of ext4, can make such a disk")
    under = folder / "disk"
    under.mkdir()
    disk = FailingDisk(folder / "image", under)
    try:
        disk.mount()
    except subprocess.CalledProcessError:
        pytest.skip("this system mounts no file")
    return disk
