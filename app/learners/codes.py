"""Codes that carry a learner to another device: short, easily spoken, soon void."""

import collections
import datetime as dt
import secrets

LIFE = dt.timedelta(minutes=10)
_LETTERS = "23456789ABCDEFGHJKMNPQRSTVWXYZ"  # none that is easily taken for another
_LENGTH = 8


def new_code() -> str:
    """A code as it is shown, e.g. “7KQ2-M9TD”: 39 bits, enough for ten minutes."""
    letters = "".join(secrets.choice(_LETTERS) for _ in range(_LENGTH))
    return f"{letters[:4]}-{letters[4:]}"


def plain(typed: str) -> str:
    """A code as it is compared: letters only, as large ones."""
    return "".join(c for c in typed.upper() if c in _LETTERS)


class Patience:
    """How many wrong codes one address may try: few a minute, in this process."""

    def __init__(self, most: int = 10, span: float = 60.0) -> None:
        self._most = most
        self._span = span
        self._tries: dict[str, collections.deque[float]] = {}

    def is_out(self, address: str, now: float) -> bool:
        """Whether `address` must wait."""
        tries = self._tries.get(address, collections.deque())
        while tries and tries[0] <= now - self._span:
            tries.popleft()
        return len(tries) >= self._most

    def note(self, address: str, now: float) -> None:
        """A wrong code from `address`."""
        if len(self._tries) > 10_000:
            self._tries.clear()
        self._tries.setdefault(address, collections.deque()).append(now)
