"""Prices from the file of whoever runs the server, ready to be put into a form."""

import dataclasses
import datetime as dt
from collections.abc import Collection, Mapping

from app.calculators.forms import query_of
from app.estimator.estimates.accelerator_choice.terms import gpus
from app.estimator.hardware.parts import find_part
from app.estimator.hardware.prices import Per, Price, PriceList
from app.estimator.registry import EstimateSpec
from app.instruments.links import calculator_url

# The inputs that take a price of one accelerator, by the way it is paid.
_FIELDS: Mapping[str, Per] = {
    "rent": "hour",
    "usd_per_gpu_hour": "hour",
    "cost_per_gpu_hour": "hour",
    "price": "buy",
}
_COMPUTED_IN = "USD"


@dataclasses.dataclass(frozen=True, slots=True)
class PriceLink:
    """The prices of a part as a link that writes them into the form."""

    link: str
    part: str
    words: str
    day: dt.date
    taken: bool


def offers(
    entry: EstimateSpec, typed: Mapping[str, str], prices: PriceList
) -> tuple[PriceLink, ...]:
    """What the file offers to a calculator, beside all that was typed into it."""
    inputs = {field.name for field in dataclasses.fields(entry.inputs)}
    fields = {name: per for name, per in _FIELDS.items() if name in inputs}
    usable = [p for p in prices.prices if p.currency == _COMPUTED_IN]
    if "prices" in inputs:
        return _ranked(entry, typed, usable)
    found = []
    for part in dict.fromkeys(p.part for p in usable if _is_card(p.part)):
        known = {p.per: p for p in usable if p.part == part}
        given = {name: known[per] for name, per in fields.items() if per in known}
        if given:
            filled = _filled(given, inputs)
            found.append(_offer(entry, typed, filled, list(given.values())))
    return tuple(found)


def _filled(given: Mapping[str, Price], inputs: Collection[str]) -> dict[str, str]:
    """What the form takes from these prices, with the part and the year."""
    first = next(iter(given.values()))
    oldest = min(price.day for price in given.values())
    beside = {"gpu": first.part, "priced_in": str(oldest.year)}
    filled = {name: f"{price.amount:.12g}" for name, price in given.items()}
    return filled | {name: word for name, word in beside.items() if name in inputs}


def _ranked(
    entry: EstimateSpec, typed: Mapping[str, str], usable: list[Price]
) -> tuple[PriceLink, ...]:
    """All prices of an hour at once, for the calculator that ranks GPUs."""
    ranked = {gpu.id for gpu in gpus()}
    hours = [p for p in usable if p.per == "hour" and p.part in ranked]
    if not hours:
        return ()
    words = ", ".join(f"{p.part} {p.amount:.12g}" for p in hours)
    return (_offer(entry, typed, {"prices": words}, hours),)


def _offer(
    entry: EstimateSpec, typed: Mapping[str, str], filled: Mapping[str, str], of: list[Price]
) -> PriceLink:
    names = dict.fromkeys(_name(price.part) for price in of)
    return PriceLink(
        link=calculator_url(entry.name, query_of({**typed, **filled})),
        part=", ".join(names),
        words=", ".join(price.words for price in of),
        day=min(price.day for price in of),
        taken=all(typed.get(name) == word for name, word in filled.items()),
    )


def _is_card(part: str) -> bool:
    found = find_part(part)
    return found is not None and found.kind == "accelerator"


def _name(part: str) -> str:
    found = find_part(part)
    return found.name if found else part
