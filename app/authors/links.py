"""Links that let a browser onto the author's bench: long, short-lived, used once."""

import datetime as dt
import secrets

LIFE = dt.timedelta(minutes=15)
"""How long a link works."""
STAY = dt.timedelta(days=30)
"""How long a browser stays in after its last use of the bench."""
RENEWAL = dt.timedelta(days=1)
"""How old the last use may be before it is written down anew."""


def new_token() -> str:
    """A word of 256 bits: nobody guesses it, so nobody needs to be locked out."""
    return secrets.token_urlsafe(32)


def link_of(address: str, token: str) -> str:
    """The link as it is printed; `address` is that of the server."""
    return f"{address}/authoring/enter?token={token}"
