"""Choices with a weight each, and the rules of partial credit that come near."""

import dataclasses
from collections.abc import Sequence

from app.exchange.items import Item, Kind, Option
from app.exchange.markup.texts import Losses


@dataclasses.dataclass(frozen=True, slots=True)
class Weighted:
    """A choice that is worth `weight` percent of the mark."""

    text: str
    weight: float
    feedback: str = ""


def weighted_choices(
    item: Item, given: Sequence[Weighted], losses: Losses, *, several: bool
) -> Item:
    """A single or multiple choice; what our rules cannot say is noted as lost.

    In a single choice only the full mark is right. In a multiple choice everything
    with a positive weight is, and the rule of credit follows from the penalties.
    """
    if not several:
        best = max((w.weight for w in given), default=0)
        for choice in given:
            if 0 < choice.weight < best:
                losses.add(f"“{choice.text}” is worth {choice.weight:g}%; here nothing")
        options = tuple(Option(w.text, w.weight == best > 0, w.feedback) for w in given)
        kind: Kind = "true-false" if _truth(options) else "single"
        if sum(o.right for o in options) > 1:
            kind = "multiple"
            losses.add("either answer counted in full; here both must be ticked")
        return dataclasses.replace(item, kind=kind, options=options)
    options = tuple(Option(w.text, w.weight > 0, w.feedback) for w in given)
    partial = item.partial or _rule(given, losses)
    return dataclasses.replace(item, kind="multiple", options=options, partial=partial)


def _truth(options: tuple[Option, ...]) -> bool:
    return {o.text.strip(" .").lower() for o in options} == {"true", "false"}


def _rule(given: Sequence[Weighted], losses: Losses) -> str:
    """`net` when a wrong tick costs what a right one brings, else the nearest."""
    gains = {round(w.weight, 2) for w in given if w.weight > 0}
    costs = {round(-w.weight, 2) for w in given if w.weight <= 0}
    if len(gains) == 1 and (not costs or all(_near(c, gains) for c in costs)):
        return "net"
    if costs and min(costs) >= 99.9:
        return "off"
    losses.add("its weights are replaced: a wrong tick costs what a right one brings")
    return "net"


def _near(cost: float, gains: set[float]) -> bool:
    return any(abs(cost - gain) < 0.01 for gain in gains)


def weights(item: Item) -> list[float]:
    """What each choice of an item is worth in percent, for formats with weights.

    All or nothing is written as near as it goes: a wrong tick takes everything.
    """
    right = sum(o.right for o in item.options) or 1
    share = round(100 / right, 5)
    if item.kind != "multiple":
        return [100.0 if o.right else 0.0 for o in item.options]
    cost = -100.0 if item.partial in {"", "off"} else -share
    return [share if o.right else cost for o in item.options]
