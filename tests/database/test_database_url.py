"""A database address is never shown with its password."""

import pytest

from app.database.engine import redact_passwords_in_message, redact_passwords_of_url


@pytest.mark.parametrize(
    ("address", "seen"),
    [
        ("postgresql+psycopg://ada:hush@db/x", "postgresql+psycopg://ada:***@db/x"),
        (
            "postgresql+psycopg://ada@db/x?password=hush&sslmode=require",
            "postgresql+psycopg://ada@db/x?password=***&sslmode=require",
        ),
        ("postgresql+psycopg://db/x?sslpassword=hush", None),
        ("postgresql+psycopg://ada:hu@hush@db/x", "postgresql+psycopg://ada:***@db/x"),
        ("postgresql+psycopg://ada:hush@db:many/x", "(an address that cannot be read)"),
        ("hush", "(an address that cannot be read)"),
        ("sqlite:////data/headroom.db", "sqlite:////data/headroom.db"),
    ],
)
def test_every_password_is_replaced_by_stars(address: str, seen: str | None) -> None:
    assert "hush" not in redact_passwords_of_url(address)
    assert seen is None or redact_passwords_of_url(address) == seen


@pytest.mark.parametrize(
    "address",
    [
        "postgresql+psycopg://ada:hush@db/x",
        "postgresql+psycopg://ada@db/x?password=hush",
        "postgresql+psycopg://ada:more@hush@db/x",
    ],
)
def test_what_the_driver_says_is_shown_without_it(address: str) -> None:
    said = redact_passwords_in_message("cannot reach “hush” as ada", address)

    assert said == "cannot reach “***” as ada"
