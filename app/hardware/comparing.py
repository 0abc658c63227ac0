"""Chosen parts side by side: what differs, and which value is the better one."""

import dataclasses
from collections.abc import Sequence

from app.estimator.hardware.fields import CatalogField
from app.estimator.hardware.parts import CatalogPart, PartValue

MOST = 4
"""Parts that find room beside each other."""
_LESS_IS_BETTER = frozenset({"tdp", "power", "rack_units"})
_NOT_RANKED = frozenset({"launch_year", "gpus", "nics", "power_supplies", "power_supplies_needed"})


@dataclasses.dataclass(frozen=True, slots=True)
class ComparedField:
    """One value of all chosen parts; `best` are the places of the better ones."""

    field: CatalogField
    values: tuple[PartValue | None, ...]
    differs: bool
    best: frozenset[int]


def compared(chosen: Sequence[CatalogPart]) -> dict[str, list[ComparedField]]:
    """The values of the parts by group, those of the first part's kind first."""
    fields = dict.fromkeys(v.field for part in chosen for v in part.values)
    groups: dict[str, list[ComparedField]] = {}
    for field in fields:
        values = tuple(part.get(field.name) for part in chosen)
        groups.setdefault(field.group, []).append(_beside(field, values))
    return groups


def _beside(field: CatalogField, values: tuple[PartValue | None, ...]) -> ComparedField:
    words = {value.words if value else "" for value in values}
    return ComparedField(field, values, len(words) > 1, _best(field, values))


def _best(field: CatalogField, values: Sequence[PartValue | None]) -> frozenset[int]:
    """The places of the better numbers; none where all agree or nothing ranks."""
    numbers = {
        place: float(value.number)
        for place, value in enumerate(values)
        if value and isinstance(value.number, int | float)
    }
    if len(set(numbers.values())) < 2 or field.name in _NOT_RANKED:
        return frozenset()
    choose = min if field.name in _LESS_IS_BETTER else max
    wanted = choose(numbers.values())
    return frozenset(place for place, number in numbers.items() if number == wanted)
