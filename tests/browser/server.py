"""A real server process on a free port, that a test may kill and start again."""

import contextlib
import multiprocessing
import multiprocessing.process
import os
import random
import signal
import socket
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Self

from app.cli import main

ROOT = Path(__file__).resolve().parents[2]
UNLIMITED = dict.fromkeys(("rate_learners", "rate_writes", "rate_writes_browser"), "off")
"""For servers whose learners all come from one address, and do not pause."""
# Importing the app and compiling its templates costs more than all else at a start, so
# one process does it and each server is a copy of that. Others start with `headroom
# serve` itself, for example in tests/authors.
WARM = multiprocessing.get_context("forkserver")
_PRELOADED = "tests.browser.warm"
WARM.set_forkserver_preload([_PRELOADED])


def free_port() -> int:
    """A port on which nobody listens, and that no connection is given meanwhile."""
    while True:
        port = random.SystemRandom().randrange(10_000, 32_000)  # below those
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def say_into(log: Path) -> None:
    """Have all that this process says from now on in a file."""
    with log.open("ab") as file:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            os.dup2(file.fileno(), stream.fileno())


def _run(environment: dict[str, str], log: Path, *words: str) -> None:
    """What `headroom …` does, in a session of its own, with what it says in a file."""
    os.setsid()
    os.chdir(ROOT)
    # Tests that run in the background may have inherited to ignore them.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    say_into(log)
    # What fails there is passed over in silence, and then each server imports the app.
    assert _PRELOADED in sys.modules, f"{_PRELOADED} cannot be imported"
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdin = os.fdopen(0)  # which uvicorn hands on to its workers
    os.environ.clear()
    os.environ.update(environment)
    sys.exit(main([*words]))


class Server:
    """`headroom serve` on its own data folder; `stop(signal.SIGKILL)` is a crash."""

    def __init__(self, data: Path, content: Path, **settings: str) -> None:
        self.data = data
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._log = data.parent / f"server-{self.port}.log"
        self._environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("HEADROOM_")},
            "HEADROOM_DATA": str(data),
            "HEADROOM_CONTENT": str(content),
            "HEADROOM_PORT": str(self.port),
            **{f"HEADROOM_{k.upper()}": v for k, v in settings.items()},
        }
        self._process: multiprocessing.process.BaseProcess | None = None

    def start(self) -> Self:
        self.launch()
        self.wait()
        return self

    def launch(self, terminal: Path | None = None) -> None:
        """Start it without waiting for it, so that it prints to a terminal if given."""
        self._process = self.begin(terminal or self._log, "serve")

    def begin(self, log: Path, *words: str) -> multiprocessing.process.BaseProcess:
        """Start `headroom …`, which prints into a file or to a terminal."""
        process = WARM.Process(target=_run, args=(self._environment, log, *words))
        process.start()
        return process

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        """Whatever a test found wrong, its server is not there for the next."""
        if self.runs:
            self.stop()

    def command(self, *words: str) -> str:
        """What `headroom …` prints when it is run beside the server."""
        said = self._log.with_suffix(".said")
        said.unlink(missing_ok=True)
        process = self.begin(said, *words)
        process.join(timeout=120)  # only so that nothing hangs for ever
        assert process.exitcode == 0, said.read_text()
        return said.read_text()

    @property
    def runs(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.is_alive()

    @property
    def pid(self) -> int:
        """The process that was started; workers are its children."""
        assert self._process is not None
        assert self._process.pid is not None
        return self._process.pid

    @property
    def log(self) -> str:
        """What it has printed since the first start."""
        return self._log.read_text()

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int | None:
        """Stop the server; returns its exit code, None where it was not running."""
        if self._process is None:
            return None
        os.killpg(self.pid, how)
        self._process.join(timeout=60)  # only so that nothing hangs for ever
        code = self._process.exitcode
        assert code is not None
        self._process = None
        return code

    def wait(self) -> None:
        """Return when it answers; fail with what it said instead."""
        for _ in range(2400):
            if not self.runs:
                raise RuntimeError(f"the server ended at once:\n{self.log}")
            try:
                urllib.request.urlopen(self.url + "/healthz", timeout=30).close()  # noqa: S310 - our own address
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
            else:
                return
        self.stop(signal.SIGKILL)
        raise RuntimeError(f"the server did not answer for two minutes:\n{self.log}")
