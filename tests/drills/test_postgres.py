"""PostgreSQL is restarted while learners answer."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.database.engine import make_engine
from app.database.schema import upgrade_schema
from tests.amounts import FACTOR
from tests.browser.server import UNLIMITED, Server, free_port
from tests.conftest import TINY
from tests.drills.learners import Learners, assert_nothing_lost_or_doubled

FOUND = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
pytestmark = pytest.mark.skipif(
    not FOUND or not os.environ.get("HEADROOM_TEST_DATABASE_URL"),
    reason="needs the programs of PostgreSQL, and the wish to test with it",
)


class Cluster:
    """A database server of one's own, in a folder that its user may read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.port = free_port()
        shutil.chown(folder, "postgres") if os.geteuid() == 0 else None
        self._run("initdb", "-U", "study", "--auth=trust", "-E", "UTF8", "--no-sync")
        self.start()

    @property
    def address(self) -> str:
        return f"postgresql+psycopg://study@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        options = (
            f"-p {self.port} -c listen_addresses=127.0.0.1 "
            f"-c unix_socket_directories={self._folder}"
        )
        self._run("pg_ctl", "-w", "-l", str(self._folder / "log"), "-o", options, "start")

    def stop(self, mode: str) -> None:
        self._run("pg_ctl", "-w", "-m", mode, "stop")

    def _run(self, program: str, *words: str) -> None:
        command = [str(FOUND[-1] / program), "-D", str(self._folder), *words]
        if os.geteuid() == 0:
            command = ["runuser", "-u", "postgres", "--", *command]
        subprocess.run(
            command,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
        )


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        made = Cluster(Path(folder))
        yield made
        made.stop("immediate")


def test_nothing_acknowledged_is_lost_when_the_database_is_restarted(
    tmp_path: Path, cluster: Cluster
):
    engine = make_engine(cluster.address)
    upgrade_schema(engine)
    engine.dispose()
    server = Server(
        tmp_path / "data",
        TINY,
        database_url=cluster.address,
        **UNLIMITED,
        backups="off",
    )
    with server, Learners(server.url) as learners:
        for mode in ("fast", "immediate") * FACTOR:
            learners.wait_for(more=20)
            cluster.stop(mode)
            cluster.start()
        learners.wait_for(more=20)

    assert_nothing_lost_or_doubled(learners, cluster.address)
