"""Codes that carry a learner to another device: short, easily spoken, soon void."""

import datetime as dt
import secrets

LIFE = dt.timedelta(minutes=10)
_LETTERS = "23456789ABCDEFGHJKMNPQRSTVWXYZ"  # none that is easily taken for another
LENGTH = 8


def new_code() -> str:
    """A code as it is shown, e.g. “7KQ2-M9TD”: 39 bits, enough for ten minutes."""
    letters = "".join(secrets.choice(_LETTERS) for _ in range(LENGTH))
    return f"{letters[:4]}-{letters[4:]}"


def normalize_code(typed: str) -> str:
    """A code as it is compared: letters only, as large ones."""
    return "".join(c for c in typed.upper() if c in _LETTERS)
