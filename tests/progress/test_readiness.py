"""The benchmark of readiness runs, and says the same each time."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.content.live.library import Library
from benchmarks import readiness

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def read_once(shipped: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "load", lambda _: shipped)


@pytest.mark.usefixtures("read_once")
def test_a_quick_run_reports_every_part_and_can_be_repeated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["readiness", "--quick"])

    assert readiness.main() == 0

    page = capsys.readouterr().out
    assert page.startswith("Seed 20261211: 6 learners, ")
    for part in ("chance said", "Brier score", "bias", "inside the range"):
        assert part in page
    assert in_another_process() == page


def in_another_process() -> str:
    """The same where sets have another order."""
    other = {**os.environ, "PYTHONHASHSEED": "7"}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.readiness", "--quick"],
        cwd=ROOT,
        env=other,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout
