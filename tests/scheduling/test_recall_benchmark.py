"""The benchmark of recall still runs, and says the same twice."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def quick() -> str:
    """What `python -m benchmarks.recall --quick` prints: one scenario."""
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.recall", "--quick"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout


def test_every_way_of_studying_is_told_and_the_same_twice() -> None:
    page = quick()

    head, _, row = page.splitlines()

    cells = re.findall(r"([\d.]+) ± ([\d.]+) \(([\d.]+)\)", row)
    assert len(cells) == 6
    assert "plain" in head
    assert "plan" in head
    for recall, error, minutes in cells:
        assert 0 < float(recall) < 100
        assert float(error) < 20
        # Five minutes a day are for cards; lapses may run over a little.
        assert float(minutes) < 5.5
    assert quick() == page
