"""The benchmark of readiness runs, and says the same each time."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.content.library import LiveLibrary
from benchmarks import readiness

ROOT = Path(__file__).resolve().parents[2]


# `python -m benchmarks.readiness`, except that the course was read before.
PROGRAM = """
import functools, pathlib, runpy, sys
from app.content import library
library.load_library = functools.partial(library.load_library, cache=pathlib.Path(sys.argv.pop()))
runpy.run_module("benchmarks.readiness", run_name="__main__")
"""


def test_a_quick_run_reports_every_part_and_can_be_repeated(
    live_shipped: LiveLibrary,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(readiness, "load_library", lambda _: live_shipped.current())
    monkeypatch.setattr(sys, "argv", ["readiness", "--quick"])

    assert readiness.main() == 0

    page = capsys.readouterr().out
    assert page.startswith("Seed 20261211: 6 learners, ")
    for part in ("chance said", "Brier score", "bias", "inside the range"):
        assert part in page
    assert live_shipped.cache
    assert in_another_process(live_shipped.cache) == page


def in_another_process(cache: Path) -> str:
    """The same where sets have another order."""
    other = {**os.environ, "PYTHONHASHSEED": "7"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "--quick", str(cache)],
        cwd=ROOT,
        env=other,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout
