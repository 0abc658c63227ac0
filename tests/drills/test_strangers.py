"""One hostile client after the other, and all at once: nobody else loses anything."""

import subprocess
import sys

import pytest

from benchmarks.strangers import try_strangers
from tests.amounts import FACTOR
from tests.drills.memory import limited_memory
from tests.drills.strangers import STRANGERS

SMALL_CONTAINER = 512 * 1024 * 1024
"""Bytes of memory that a server needs at most, whatever one hostile client does."""
CONTAINER = 768 * 1024 * 1024
"""Bytes that hosting.md gives to a container, for all of them at once."""


@pytest.mark.skipif(FACTOR == 1, reason="takes minutes: make drills")
@pytest.mark.parametrize("names", [*([name] for name in STRANGERS), [*STRANGERS]])
def test_a_hostile_client_neither_ends_the_server_nor_keeps_others_from_saving(
    names: list[str],
):
    memory = SMALL_CONTAINER if len(names) == 1 else CONTAINER
    report = try_strangers(names, 15, memory)

    assert report.is_alive
    assert report.failed == 0
    assert report.peak_memory < memory


def test_a_process_that_takes_more_than_its_container_has_ends():
    greedy = [sys.executable, "-c", "len(bytearray(300_000_000)); print('there')"]
    with limited_memory(150_000_000) as words:
        few = subprocess.run([*words, *greedy], check=False, capture_output=True)
    with limited_memory(600_000_000) as words:
        many = subprocess.run([*words, *greedy], check=False, capture_output=True)

    assert few.returncode != 0
    assert many.stdout == b"there\n"
