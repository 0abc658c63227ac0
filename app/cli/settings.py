"""The settings as commands read them: what cannot be used is one sentence."""

import argparse

from pydantic import ValidationError

from app.cli.stop import CommandError
from app.config import Settings, rows, unknown
from app.db.database_url import redact_url


def read_settings() -> Settings:
    """Read them from the environment; Stop names the first that cannot be used."""
    for sentence in unknown():
        raise CommandError(sentence)
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors()[0]
        name = f"HEADROOM_{str(first['loc'][0]).upper()}"
        raise CommandError(
            f"{name} is “{first['input']}”, which cannot be used: {first['msg']}."
        ) from None


def list_settings(_given: argparse.Namespace) -> int:
    """`headroom settings`: each with its value, its default and its meaning."""
    for variable, value, default, meaning in rows(read_settings()):
        if variable == "HEADROOM_DATABASE_URL" and value:
            value = redact_url(value)  # noqa: PLW2901 - as it may be seen
        print(f"{variable}\n    value    {value}\n    default  {default or '(empty)'}")
        print(f"    meaning  {meaning}")
    return 0
