"""The benchmark of readiness runs, and says the same each time."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def quick() -> str:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.readiness", "--quick"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_a_quick_run_reports_every_part_and_can_be_repeated():
    page = quick()

    assert page.startswith("Seed 20261211: 6 learners, ")
    for part in ("chance said", "Brier score", "bias", "inside the range"):
        assert part in page
    assert quick() == page
