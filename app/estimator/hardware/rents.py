"""What renting one accelerator costs by a provider's own list, where nobody says."""

import dataclasses
import datetime as dt

from app.estimator import catalogue
from app.estimator.hardware.accelerators import Accelerator
from app.estimator.units import format_value

# The accelerator whose list price stands in forms that ask for none.
_EXAMPLE = "h100-sxm5-80"

UNKNOWN = "No list price of this GPU is kept here; write what you pay."
"""What is said beside a cost that nobody can compute."""


@dataclasses.dataclass(frozen=True, slots=True)
class RentalPrice:
    """The price of an hour of one accelerator on demand [USD/h], and who asks it.

    `source` is the provider's list, `read_on` the day on which the price stood there.
    """

    usd_per_hour: float
    provider: str
    source: str
    read_on: dt.date

    @property
    def words(self) -> str:
        """Whose price it is, of when."""
        return f"{self.provider}'s list price of {self.read_on:%B %Y}"


def listed(name: str) -> RentalPrice | None:
    """The list price of an accelerator by its id; None where none is kept.

    >>> listed("h100-sxm5-80").provider, listed("groq-lpu-v1")
    ('Lambda', None)
    """
    row = catalogue.load_table("rents.toml", "rent").get(name)
    if row is None:
        return None
    source = row["source"][0]
    return RentalPrice(row["usd_per_hour"], row["provider"], source, row["read_on"])


def example() -> RentalPrice:
    """The price that stands in a form which asks for no accelerator: of an H100."""
    rent = listed(_EXAMPLE)
    if rent is None:
        raise LookupError(f"rents.toml has no {_EXAMPLE}")
    return rent


def price_of(gpu: Accelerator, typed: float | None) -> float | None:
    """What an hour costs [USD/h]: as typed, else as listed, else not known.

    >>> from app.estimator.hardware.accelerators import find_accelerator
    >>> h100 = find_accelerator("H100")
    >>> price_of(h100, 2.0), price_of(h100, None)
    (2.0, 3.99)
    """
    if typed is not None:
        return typed
    rent = listed(gpu.id)
    return rent.usd_per_hour if rent else None


def price_note(gpu: Accelerator, typed: float | None) -> tuple[str, ...]:
    """Where the price is from, when nobody typed one."""
    rent = listed(gpu.id)
    if typed is not None or rent is None:
        return ()
    price = format_value(rent.usd_per_hour, "USD/h")
    return (f"{price} is {rent.words} for the {gpu.name}; write what you pay.",)
