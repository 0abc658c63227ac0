"""What would turn the verdict of `power-cooling`."""

from app.estimator.estimate import VerdictFlip
from app.estimator.estimates.power_cooling.asked import PowerCoolingInputs
from app.estimator.estimates.power_cooling.compute import PowerCoolingResult
from app.estimator.thresholds import round_past_limit, within
from app.estimator.units import format_number, format_value


def changes(asked: PowerCoolingInputs, found: PowerCoolingResult) -> tuple[VerdictFlip, ...]:
    """The limits and sizes at which racks or site turn."""
    return (*_rack_changes(asked, found), *_site_changes(asked, found))


def _rack_changes(asked: PowerCoolingInputs, found: PowerCoolingResult) -> tuple[VerdictFlip, ...]:
    """The rack power that holds one system more, or none, or the height it needs."""
    now = format_value(asked.rack_limit, "W")
    room = asked.rack_units // found.units
    if room == 0:
        was, flips = str(asked.rack_units), str(found.units)
        return (VerdictFlip("rack_units", "Height of a rack", was, flips, "Holds one."),)
    changes = []
    needed = (found.in_rack + 1) * found.node
    if found.in_rack < room and within(type(asked), "rack_limit", needed):
        flips = f"{round_past_limit(needed / 1e3, up=True)} kW"
        count = found.in_rack + 1
        racks = format_number(-(-asked.nodes // count))
        holds = "one system" if count == 1 else f"{count} systems"
        becomes = f"Holds {holds}: {racks} racks."
        changes.append(VerdictFlip("rack_limit", "Power of a rack", now, flips, becomes))
    if found.in_rack and within(type(asked), "rack_limit", found.node):
        flips = f"{round_past_limit(found.node / 1e3 * 0.999, up=False)} kW"
        changes.append(VerdictFlip("rack_limit", "Power of a rack", now, flips, "Holds none."))
    return tuple(changes)


def _site_changes(asked: PowerCoolingInputs, found: PowerCoolingResult) -> tuple[VerdictFlip, ...]:
    limit = asked.site_limit
    if limit is None or found.racks is None:
        return ()
    each = found.site / asked.nodes
    most = int(limit / each + 1e-9)
    fits = found.site <= limit
    becomes = "Too much for the site." if fits else "Fits."
    changes = []
    flips = most + 1 if fits else most
    if 0 < flips <= 1_000_000:
        now = format_number(asked.nodes)
        changes.append(VerdictFlip("nodes", "Systems", now, format_number(flips), becomes))
    pue = limit / found.machines
    if 1 <= pue <= 5:
        now = format_number(asked.pue)
        changes.append(VerdictFlip("pue", "PUE", now, round_past_limit(pue, up=fits), becomes))
    return tuple(changes)
