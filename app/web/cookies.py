"""The cookies of a browser: their names, and how long they stay."""

COOKIE = "headroom"
"""The cookie of a learner's key, unless a server is given another name for it."""
AUTHOR = f"{COOKIE}-author"
"""The cookie of a browser that has been let onto the author's bench."""
CHOICES = frozenset({"theme", "zone", "keys", "score", "course"})
"""Cookies of what a browser chose for itself; none of them carries a key."""

YEAR = 365 * 24 * 3600
"""Seconds for which a browser keeps what it chose."""
_KEY_AGE = 400 * 24 * 3600  # browsers keep no cookie longer; every write renews it


def written(name: str, value: str, age: int) -> bytes:
    """A Set-Cookie line for the whole site that no script can read."""
    # On its way out it is put under the prefix of the server, and on TLS it stays.
    line = f"{name}={value}; Max-Age={age}; Path=/; HttpOnly; SameSite=Lax"
    return line.encode()


def key_line(signed: str) -> bytes:
    """The Set-Cookie line that gives a browser a signed key."""
    return written(COOKIE, signed, _KEY_AGE)


def forget_line() -> bytes:
    """The Set-Cookie line that takes the key out of a browser."""
    return written(COOKIE, "", 0)
