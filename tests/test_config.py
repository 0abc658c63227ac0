"""Settings that decide who sees what."""

import pytest

from app.config import Settings


@pytest.mark.parametrize(
    ("host", "given", "offered"),
    [
        ("127.0.0.1", None, True),
        ("::1", None, True),
        ("10.0.0.5", None, False),
        ("10.0.0.5", True, True),
        ("127.0.0.1", False, False),
    ],
)
def test_the_bench_is_open_to_this_machine_unless_somebody_says_so(
    host: str, given: bool | None, offered: bool
) -> None:
    assert Settings(host=host, authoring=given).bench is offered


def test_a_database_address_of_ones_own_wins() -> None:
    assert Settings(database_url="").database.startswith("sqlite:///")
    assert Settings(database_url="postgresql+psycopg://x").database.endswith("x")
