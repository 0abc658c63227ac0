"""What hostile clients cost a learner who studies meanwhile.

    python -m benchmarks.strangers            # each of them alone, then all at once
    python -m benchmarks.strangers read_pages # some of them

Each hostile client has an address of its own (127.0.1.x) and does one thing as fast as
it can. A learner saves that a section was read, ten times a second. The table has the
time of these writes in a calm phase and during the attack of the same run, the server's
highest memory, and whether all were saved. The server has its default settings, and
the hostile clients share the machine with it.
"""

import asyncio
import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

from tests.browser.server import free_port
from tests.drills.memory import limited_memory
from tests.drills.strangers import STRANGERS, Client

ROOT = Path(__file__).resolve().parent.parent
_MODULE = ("-m", "tests.drills.strangers")
_TOPIC = "dpu"
_CALM = 5.0  # seconds
_PAUSE = 0.1  # seconds between two writes of the learner
Result = TypeVar("Result")
_PATIENCE = 60.0  # seconds after which a write counts as failed


@dataclasses.dataclass(frozen=True, slots=True)
class Report:
    """One attack as a learner saw it; times in seconds, memory in bytes."""

    calm: tuple[float, ...]
    during: tuple[float, ...]
    failed: int
    peak_memory: int
    is_alive: bool
    attackers: str

    def row(self, name: str) -> str:
        """A line of the table."""
        times = [
            1000 * t
            for values in (self.calm, self.during)
            for t in (percentile(values, 50), percentile(values, 99))
        ]
        columns = "".join(f"{time:9.0f}" for time in times)
        memory = self.peak_memory / 1e6
        state = "" if self.is_alive else "  SERVER ENDED"
        return f"{name:22}{columns}{memory:9.0f}{self.failed:8}{state}"


def percentile(values: Sequence[float], percent: int) -> float:
    """The smallest value that is not below `percent` of all."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def try_strangers(names: Sequence[str], seconds: float, memory: int = 0) -> Report:
    """Let these hostile clients attack a new server for some seconds.

    It has so many bytes of `memory` at most, as in a container; 0 is no limit.
    """
    with _server(memory) as (port, process):
        calm, lost_before = _run(_study(port, _CALM))
        attack = subprocess.Popen(
            [sys.executable, *_MODULE, str(port), str(seconds), *names],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            time.sleep(1)
            during, lost = _run(_study(port, seconds - 1))
            said, _ = attack.communicate(timeout=seconds + 60)
        finally:
            attack.kill()
        is_alive = process.poll() is None
        peak = _peak_memory(process.pid) if is_alive else 0
        return Report(calm, during, lost_before + lost, peak, is_alive, said)


def _run(work: Coroutine[Any, Any, Result]) -> Result:
    """What `work` returns; a browser test may have left a loop in this thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


async def _study(port: int, seconds: float) -> tuple[tuple[float, ...], int]:
    """Seconds that each write took, and how many were not saved."""
    learner = Client(port, "127.0.0.1", seconds)
    with contextlib.suppress(OSError, TimeoutError):
        await asyncio.wait_for(learner.ask(f"/concepts/{_TOPIC}"), _PATIENCE)
    times, failed = [], 0
    while learner.is_on:
        begun = time.perf_counter()
        saved = learner.statuses.get(303, 0)
        with contextlib.suppress(OSError, TimeoutError, ValueError):
            path = f"/concepts/{_TOPIC}/readings"
            await asyncio.wait_for(learner.ask(path, {"section": ""}), _PATIENCE)
        times.append(time.perf_counter() - begun)
        failed += learner.statuses.get(303, 0) == saved
        await asyncio.sleep(_PAUSE)
    return tuple(times), failed


@contextlib.contextmanager
def _server(memory: int) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    port = free_port()
    limit: AbstractContextManager[list[str]] = contextlib.nullcontext([])
    if memory:
        limit = limited_memory(memory)
    with tempfile.TemporaryDirectory() as data, limit as words:
        own = {"HEADROOM_DATA": data, "HEADROOM_PORT": str(port)}
        others = {k: v for k, v in os.environ.items() if not k.startswith("HEADROOM_")}
        process = subprocess.Popen(
            [*words, sys.executable, "-m", "app", "serve"],
            cwd=ROOT,
            env=others | own,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _run(_wait(port))
            yield port, process
        finally:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=30)
            process.kill()
            process.wait()


async def _wait(port: int) -> None:
    client = Client(port, "127.0.0.1", 120)
    while client.is_on and not client.statuses:
        with contextlib.suppress(OSError):
            await client.ask("/healthz")
        await asyncio.sleep(0.1)


def _peak_memory(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def main(names: Sequence[str]) -> None:
    """Print the table."""
    print(f"{'':22}{'calm, ms':>18}{'attacked, ms':>18}{'memory':>9}{'not':>8}")
    print(f"{'':22}{'p50':>9}{'p99':>9}{'p50':>9}{'p99':>9}{'MB':>9}{'saved':>8}")
    rounds = {name: [name] for name in names or STRANGERS}
    if not names:
        rounds["all at once"] = [*STRANGERS]
    for name, together in rounds.items():
        print(try_strangers(together, 20).row(name), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
