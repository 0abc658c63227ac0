"""A rate as it is written in a setting: 60/minute. Standard library only."""

import dataclasses
import re

_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
_RATE = re.compile(rf"([1-9]\d{{0,8}})/({'|'.join(_SECONDS)})")


@dataclasses.dataclass(frozen=True, slots=True)
class RateLimit:
    """So many in a second, minute, hour or day; windows are fixed."""

    most: int
    unit: str

    @property
    def seconds(self) -> int:
        """The length of the window."""
        return _SECONDS[self.unit]


def read_rates(words: str) -> tuple[RateLimit, ...]:
    """The rates of a setting, e.g. "60/minute;1000/day"; none for "off".

    Raises ValueError with a sentence for anything else.
    """
    if words.strip().lower() == "off":
        return ()
    found = [_RATE.fullmatch(part.strip()) for part in words.split(";")]
    if not all(found):
        raise ValueError("write a number for a time, e.g. 60/minute, or off")
    return tuple(RateLimit(int(match[1]), match[2]) for match in found if match)
