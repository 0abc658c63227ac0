"""Settings that decide who sees what."""

import pytest

from app.settings import Settings


@pytest.mark.parametrize(
    ("given", "offered"), [(None, True), ("", True), ("1", True), ("0", False)]
)
def test_the_bench_is_there_unless_somebody_says_so(
    monkeypatch, given: str | None, offered: bool
) -> None:
    monkeypatch.delenv("HEADROOM_AUTHORING", raising=False)
    if given is not None:
        monkeypatch.setenv("HEADROOM_AUTHORING", given)

    assert Settings(host="10.0.0.5").authoring is offered


def test_a_database_address_of_ones_own_wins() -> None:
    assert Settings(database_url="").database_url_or_default.startswith("sqlite:///")
    assert Settings(database_url="postgresql+psycopg://x").database_url_or_default.endswith("x")
