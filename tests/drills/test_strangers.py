"""One hostile client after the other, and all at once: nobody else loses anything."""

import pytest

from benchmarks.strangers import try_strangers
from tests.amounts import FACTOR
from tests.drills.strangers import STRANGERS

CONTAINER = 512 * 1024 * 1024
"""Bytes of memory of a small container, which a server must stay below."""
pytestmark = pytest.mark.skipif(FACTOR == 1, reason="takes minutes: make drills")


@pytest.mark.parametrize("names", [*([name] for name in STRANGERS), [*STRANGERS]])
def test_a_hostile_client_neither_ends_the_server_nor_keeps_others_from_saving(
    names: list[str],
):
    report = try_strangers(names, seconds=15)

    assert report.is_alive
    assert report.failed == 0
    assert report.peak_memory < CONTAINER
