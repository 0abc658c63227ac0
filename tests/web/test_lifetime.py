"""Several processes live and end together."""

import os
import signal
import urllib.error
import urllib.request
from pathlib import Path

from tests.browser.server import Server
from tests.conftest import TINY


def answers(server: Server) -> bool:
    """Whether anybody listens. A worker that ends may break a connection off first."""
    try:
        urllib.request.urlopen(server.url + "/healthz", timeout=30).close()  # noqa: S310 - our own address
    except urllib.error.URLError as error:
        if isinstance(error.reason, ConnectionRefusedError):
            return False
        if not isinstance(error.reason, ConnectionError):
            raise
    except ConnectionError:
        pass
    return True


def test_workers_end_when_their_parent_is_killed(tmp_path: Path):
    server = Server(tmp_path / "data", TINY, workers="2").start()

    os.kill(server.pid, signal.SIGKILL)

    while answers(server):  # until both are gone: the port refuses
        pass
    assert not answers(server)
    server.stop(signal.SIGKILL)
