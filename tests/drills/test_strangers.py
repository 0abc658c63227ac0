"""One hostile client after the other, and all at once: nobody else loses anything."""

import pytest

from benchmarks.strangers import try_strangers
from tests.amounts import FACTOR
from tests.drills.strangers import STRANGERS

SMALL_CONTAINER = 512 * 1024 * 1024
"""Bytes of memory that a server needs at most, whatever one hostile client does."""
CONTAINER = 768 * 1024 * 1024
"""Bytes that hosting.md gives to a container, for all of them at once."""
pytestmark = pytest.mark.skipif(FACTOR == 1, reason="takes minutes: make drills")


@pytest.mark.parametrize("names", [*([name] for name in STRANGERS), [*STRANGERS]])
def test_a_hostile_client_neither_ends_the_server_nor_keeps_others_from_saving(
    names: list[str],
):
    report = try_strangers(names, seconds=15)

    assert report.is_alive
    assert report.failed == 0
    assert report.peak_memory < (SMALL_CONTAINER if len(names) == 1 else CONTAINER)
