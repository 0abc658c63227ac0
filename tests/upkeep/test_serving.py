"""Drills with real servers: started at once, copied, robbed of disk and data."""

import contextlib
import os
import resource
import shutil
import signal
import socket
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from app.database.backup import create_backup, restore_backup
from app.database.installation import Installation, InstallationError
from tests.amounts import FACTOR
from tests.databases import ABOUT_SQLITE
from tests.upkeep.conftest import NOW
from tests.upkeep.servers import Server, visit

People = Callable[[Installation], set[str]]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return tmp_path / "copy.zip"


def write(browser: httpx.Client) -> int:
    """Mark a page as read, which makes a learner of whoever has none."""
    return browser.post("/concepts/weights/readings").status_code


@pytest.mark.drill
@pytest.mark.parametrize("_turn", range(FACTOR))
def test_three_servers_that_start_at_once_on_nothing_all_come_up(
    fresh: Installation, people: People, _turn: int
) -> None:
    servers = [Server(fresh) for _ in range(3)]
    with contextlib.ExitStack() as running:
        for server in servers:
            running.callback(server.stop)
            server.launch()
        for server in servers:
            server.wait()

        with visit(servers[0]) as ada:
            assert write(ada) == 303
            for other in servers[1:]:  # they know the cookie
                ada.base_url = other.url
                assert write(ada) == 303
        assert len(people(fresh)) == 1


def test_a_copy_of_a_running_server_brings_learners_back_on_another_machine(
    installation: Installation, fresh: Installation, people: People, copy: Path
) -> None:
    with Server(installation) as server, visit(server) as ada:
        for _ in range(5):
            assert write(ada) == 303
        before = people(installation)

        manifest = create_backup(installation, copy, NOW)

        assert (manifest.rows["learner"], manifest.rows["reading"]) == (
            1,
            3,
        )  # all sections
        cookies = dict(ada.cookies)

    restore_backup(fresh, copy, NOW)

    with Server(fresh) as server, visit(server) as ada:
        ada.cookies.clear()
        ada.cookies.update(cookies)
        assert write(ada) == 303
    assert people(fresh) == before


def test_nothing_is_restored_while_a_server_runs(installation: Installation, copy: Path) -> None:
    create_backup(installation, copy, NOW)

    with Server(installation) as server:
        with pytest.raises(InstallationError, match="a server uses it"):
            restore_backup(installation, copy, NOW)

        with visit(server) as ada:
            assert write(ada) == 303

    restore_backup(installation, copy, NOW)


def test_a_server_that_was_killed_is_in_nobodys_way(
    installation: Installation, people: People, copy: Path
) -> None:
    with Server(installation) as server, visit(server) as ada:
        assert write(ada) == 303
        create_backup(installation, copy, NOW)
        server.stop(signal.SIGKILL)

    restore_backup(installation, copy, NOW)

    assert len(people(installation)) == 1


@ABOUT_SQLITE
def test_what_a_server_keeps_is_private(fresh: Installation) -> None:
    with Server(fresh) as server, visit(server) as ada:
        assert write(ada) == 303

        kept = [path for path in fresh.data_folder.iterdir() if path.is_file()]

        assert {"headroom.db", "headroom.db-wal", "secret"} <= {p.name for p in kept}
        assert {stat.S_IMODE(p.stat().st_mode) for p in kept} == {0o600}
        assert stat.S_IMODE(fresh.data_folder.stat().st_mode) == 0o700


@ABOUT_SQLITE
def test_after_the_data_folder_vanished_nothing_is_confirmed(
    installation: Installation,
) -> None:
    with Server(installation) as server, visit(server) as ada:
        assert write(ada) == 303

        shutil.rmtree(installation.data_folder)

        assert write(ada) == 500
        assert write(ada) == 500
        assert not installation.data_folder.exists()


@ABOUT_SQLITE
@pytest.mark.skipif(sys.platform != "linux", reason="limits a running process")
def test_on_a_full_disk_writing_fails_and_reading_goes_on(
    installation: Installation, people: People
) -> None:
    with Server(installation) as server, visit(server) as ada:
        assert write(ada) == 303
        log = Path(f"{installation.data_folder / 'headroom.db'}-wal").stat().st_size
        unlimited = resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (log, -1))
        statuses = []
        for _ in range(3):  # each needs more of the log than there is
            with visit(server) as other:
                statuses.append(write(other))
                assert other.get("/concepts/weights").status_code == 200

        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, unlimited)

        assert statuses == [500] * 3
        assert write(ada) == 303
        assert len(people(installation)) == 1


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
def test_large_forms_wait_on_the_disk_of_the_data(fresh: Installation) -> None:
    folder = fresh.data_folder / "tmp"
    left, busy = folder / "headroom-old", folder / "headroom-new"
    for path in (left, busy):
        path.mkdir(parents=True)
    os.utime(left, (0, 0))

    with Server(fresh) as server:
        assert [path.name for path in folder.iterdir()] == ["headroom-new"]
        with half_sent(server.port, 200_000):
            while not (found := files_of(server.pid, folder)):
                time.sleep(0.05)

    assert all(name.endswith("(deleted)") for name in found)


def half_sent(port: int, size: int) -> socket.socket:
    """A connection on which all of a form has come but its last byte."""
    line = socket.create_connection(("127.0.0.1", port), timeout=60)
    head = f"POST /settings HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n"
    line.sendall(head.encode() + b"x" * (size - 1))
    return line


def files_of(pid: int, folder: Path) -> list[str]:
    """The files in a folder that a process has open."""
    names = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            names.append(str(entry.readlink()))
    return [name for name in names if name.startswith(str(folder))]
