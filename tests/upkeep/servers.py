"""Real servers: processes of `headroom serve`."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx

from app.upkeep.installation import Installation
from tests.conftest import TINY

ROOT = Path(__file__).parents[2]
_PATIENCE = 120.0  # seconds, only so that nothing hangs for ever


class Server:
    """A process that serves; it is asked through browsers."""

    def __init__(self, installation: Installation, workers: int = 1) -> None:
        port = free_port()
        self.address = f"http://127.0.0.1:{port}"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "app", "serve"],
            cwd=ROOT,
            env={
                **environment(installation),
                "HEADROOM_PORT": str(port),
                "HEADROOM_WORKERS": str(workers),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def wait_until_it_answers(self) -> None:
        """Return when a page is answered; fail with what the server said instead."""
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            with contextlib.suppress(httpx.TransportError), self.browser() as browser:
                if browser.get("/about").status_code < 500:
                    return
            if self.process.poll() is not None:
                break
            time.sleep(0.05)  # nothing tells when a socket begins to listen
        self.process.kill()
        raise AssertionError(self.process.communicate()[0])

    def browser(self) -> httpx.Client:
        """A new browser, which follows no redirects."""
        return httpx.Client(base_url=self.address, timeout=_PATIENCE)

    def stop(self) -> str:
        """Ask it to end; what it said."""
        self.process.terminate()
        return self.process.communicate(timeout=_PATIENCE)[0]


@contextlib.contextmanager
def serving(installation: Installation, workers: int = 1) -> Iterator[Server]:
    """A server that answers, until the end of the block."""
    server = Server(installation, workers)
    try:
        server.wait_until_it_answers()
        yield server
    finally:
        server.stop()


def environment(installation: Installation) -> dict[str, str]:
    """The environment of a process that looks after this installation."""
    others = {n: v for n, v in os.environ.items() if not n.startswith("HEADROOM_")}
    return {
        **others,
        "HEADROOM_DATA": str(installation.data),
        "HEADROOM_DATABASE_URL": installation.database,
        "HEADROOM_CONTENT": str(TINY),
    }


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
