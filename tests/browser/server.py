"""A real server process on a free port, that a test may kill and start again."""

import multiprocessing
import multiprocessing.process
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from app.cli import main

ROOT = Path(__file__).resolve().parents[2]
# Importing the app costs more than all else at a start, so one process imports it and
# each server is a copy of that. Others start with `headroom serve` itself, for example
# those of tests/upkeep.
_WARM = multiprocessing.get_context("forkserver")
_WARM.set_forkserver_preload(["app.main", "app.cli.serving"])


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _serve(environment: dict[str, str], log: Path) -> None:
    """What `headroom serve` does, in a session of its own, with its words in a file."""
    os.setsid()
    os.chdir(ROOT)
    with log.open("ab") as file:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            os.dup2(file.fileno(), stream.fileno())
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdin = os.fdopen(0)  # which uvicorn hands on to its workers
    os.environ.clear()
    os.environ.update(environment)
    sys.exit(main(["serve"]))


class Server:
    """`headroom serve` on its own data folder; `stop(signal.SIGKILL)` is a crash."""

    def __init__(self, data: Path, content: Path, **settings: str) -> None:
        self.data = data
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("HEADROOM_")},
            "HEADROOM_DATA": str(data),
            "HEADROOM_CONTENT": str(content),
            "HEADROOM_PORT": str(self.port),
            **{f"HEADROOM_{k.upper()}": v for k, v in settings.items()},
        }
        self._process: multiprocessing.process.BaseProcess | None = None

    def start(self) -> "Server":
        log = self.data.parent / "server.log"
        self._process = _WARM.Process(target=_serve, args=(self._environment, log))
        self._process.start()
        self._wait()
        return self

    def command(self, *words: str) -> str:
        """What `headroom …` prints when it is run beside the server."""
        done = subprocess.run(
            [sys.executable, "-m", "app", *words],
            cwd=ROOT,
            env=self._environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

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
        return (self.data.parent / "server.log").read_text()

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int | None:
        """Stop the server; returns its exit code, None where it was not running.

        Whoever is told to stop by a signal and obeys ends by that signal.
        """
        if self._process is None:
            return None
        os.killpg(self.pid, how)
        self._process.join(timeout=60)  # only so that nothing hangs for ever
        code = self._process.exitcode
        assert code is not None
        self._process = None
        return code

    def _wait(self) -> None:
        for _ in range(2400):
            if not self.runs:
                raise RuntimeError(f"the server ended at once:\n{self.log}")
            try:
                urllib.request.urlopen(self.url + "/healthz", timeout=1).close()  # noqa: S310 - our own address
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
            else:
                return
        self.stop(signal.SIGKILL)
        raise RuntimeError(f"the server did not answer for two minutes:\n{self.log}")
