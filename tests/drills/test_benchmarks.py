"""The benchmarks that nobody runs every day still find what they measure."""

import subprocess
import sys

from benchmarks.http import ROOT


def test_the_table_of_pages_has_all_its_rows():
    command = [sys.executable, "-m", "benchmarks.http", "0.2"]
    table = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout

    pages = ("Today", "Concept page", "Calculator result, new inputs", "Card review")
    assert all(f"\n{page} " in table for page in pages)
