"""`power-cooling`: verdict, figures, charts and formula steps of a result."""

import dataclasses

from app.estimator.estimates.power_cooling import (
    CONTINUOUS,
    TOPIC,
    PowerCoolingInputs,
    PowerCoolingResult,
    compute_site,
    find_flips,
    required_air_flow,
    required_coolant_flow,
)
from app.estimator.formula_steps import StepBuilder, format_term
from app.estimator.hardware.facility import CUBIC_FEET_PER_MINUTE, heat_in_btu
from app.estimator.registry import EstimateSpec
from app.estimator.result import (
    BarSegment,
    Estimate,
    Figure,
    FormulaStep,
    Output,
    ResultTable,
    StackedBar,
    Status,
    Verdict,
    outputs_by_name,
)
from app.estimator.units import format_number, format_value

LOAD_RANGE = (0.6, 0.9)


OUTPUTS = (
    Output("racks", "Racks", better="less"),
    Output("nodes_per_rack", "Systems in a rack", "node", better="more"),
    Output("rack_power", "Power of a full rack", "W", better="less"),
    Output("machines_power", "Machines, highest", "W", better="less"),
    Output("machines_typical", "Machines, typical", "W", better="less", modeled=True),
    Output("site_power", "Site, highest", "W", better="less"),
    Output("site_typical", "Site, typical", "W", better="less", modeled=True),
    Output("current", "Current of a rack, each phase", "A", better="less"),
    Output("circuits", "Circuits of a rack"),
    Output("heat", "Heat of the machines", "W", better="less"),
    Output("heat_btu", "Heat in BTU/h", "BTU/h", better="less"),
    Output("air", "Air through the systems", "m3/s", better="less"),
    Output("air_node", "Air through one system", "CFM", better="less"),
    Output("coolant", "Coolant", "m3/s", better="less"),
    Output("energy", "Energy", "Wh", better="less", modeled=True),
    Output("carbon", "Carbon dioxide", "kg", better="less", modeled=True),
    Output("fits", "Fits", better="more"),
)
_OUT = outputs_by_name(OUTPUTS)
_WORKING = StepBuilder(_OUT, "power-and-cooling")


# Air-cooled racks above this are rare; published designs reach 57 kW.
_DENSE = 50e3


_TIGHT = 0.9


def build_report(asked: PowerCoolingInputs, found: PowerCoolingResult) -> Estimate:
    """Build the estimate: verdict, figures, bar and steps of a site."""
    return Estimate(
        name="power-cooling",
        verdict=_build_verdict(asked, found),
        figures=_build_figures(asked, found),
        steps=_build_steps(asked, found),
        pictures=(_build_bar(asked, found),),
        tables=(_build_table(found),),
        notes=_build_notes(asked, found),
        changes=find_flips(asked, found),
    )


def site_status(asked: PowerCoolingInputs, found: PowerCoolingResult) -> Status:
    """Return `no` if a system does not fit in a rack or the site lacks the power."""
    limit = asked.site_limit
    if found.racks is None or (limit is not None and found.site > limit):
        return "no"
    near = limit is not None and found.site > _TIGHT * limit
    hot = found.rack * (1 - found.liquid) > _DENSE
    return "tight" if near or hot else "fits"


def _build_verdict(asked: PowerCoolingInputs, found: PowerCoolingResult) -> Verdict:
    status = site_status(asked, found)
    name, most = found.system.name, format_value(found.node, "W")
    if found.racks is None:
        return Verdict(status, "Too dense for the racks.", _too_dense(asked, found))
    site = format_value(found.site, "W")
    if status == "no":
        text = (
            f"{format_number(asked.nodes)} {name} need {site} with their cooling and "
            f"the site has {format_value(asked.site_limit, 'W')}."
        )
        return Verdict(status, "Too much for the site.", text)
    limit = asked.site_limit
    of = f" of the {format_value(limit, 'W')} that it has" if limit else ""
    racks = "One rack" if found.racks == 1 else f"{format_number(found.racks)} racks"
    each = "one system" if found.in_rack == 1 else f"{found.in_rack} systems"
    return Verdict(
        status,
        f"{racks} of {each}.",
        f"{format_number(asked.nodes)} {name} of {most} draw at most "
        f"{format_value(found.machines, 'W')} with their network and storage, and the "
        f"site {site}{of}.{_lost_feed_text(asked, found)}",
    )


def _lost_feed_text(asked: PowerCoolingInputs, found: PowerCoolingResult) -> str:
    """Return what fails if one of two feeds fails and a system needs over half its supplies.

    Half of the supplies are connected to each feed.
    """
    if asked.feeds != "2n" or found.short is None:
        return ""
    left, needed = found.short
    return (
        f" Without one of two feeds a system keeps {left} of its "
        f"{found.system.power_supplies} supplies and needs {needed} for full power: "
        "it runs on, slower."
    )


def _too_dense(asked: PowerCoolingInputs, found: PowerCoolingResult) -> str:
    name = found.system.name
    if found.units > asked.rack_units:
        return f"The {name} is {found.units} units high and a rack {asked.rack_units}."
    most, limit = format_value(found.node, "W"), format_value(asked.rack_limit, "W")
    return f"One {name} draws up to {most} and a rack has {limit}."


def _coolant_figure(asked: PowerCoolingInputs, found: PowerCoolingResult) -> Figure:
    if found.liquid:
        return Figure(_OUT["coolant"], required_coolant_flow(asked, found))
    note = "Air takes all heat of the systems."
    return Figure(_OUT["coolant"], None, note=note, applies=False)


def _build_figures(asked: PowerCoolingInputs, found: PowerCoolingResult) -> tuple[Figure, ...]:
    heat = found.machines
    systems = asked.nodes * found.node
    per_node = required_air_flow(asked, found, found.node) * CUBIC_FEET_PER_MINUTE
    dense = "" if found.racks else "No system fits in a rack."
    one = "" if found.racks else "Of one system, which is more than a rack takes."
    return (
        Figure(
            _OUT["racks"],
            found.racks,
            note=dense,
            primary=True,
            applies=found.racks is not None,
        ),
        Figure(_OUT["nodes_per_rack"], found.in_rack),
        Figure(_OUT["rack_power"], found.rack, note=one),
        Figure(_OUT["machines_power"], found.machines),
        _typical_figure(asked, found, "machines_typical", found.machines),
        Figure(_OUT["site_power"], found.site),
        _typical_figure(asked, found, "site_typical", found.site),
        Figure(_OUT["current"], found.current),
        Figure(_OUT["circuits"], found.circuits),
        Figure(_OUT["heat"], heat),
        Figure(_OUT["heat_btu"], round(heat_in_btu(heat))),
        Figure(_OUT["air"], required_air_flow(asked, found, systems)),
        Figure(_OUT["air_node"], round(per_node)),
        _coolant_figure(asked, found),
        _load_scaled_figure(asked, found, "energy", found.energy),
        _load_scaled_figure(asked, found, "carbon", found.carbon),
        Figure(_OUT["fits"], site_status(asked, found) != "no"),
    )


def _typical_figure(
    asked: PowerCoolingInputs, found: PowerCoolingResult, name: str, most: float
) -> Figure:
    return _load_scaled_figure(asked, found, name, most * found.load)


def _load_scaled_figure(
    asked: PowerCoolingInputs, found: PowerCoolingResult, name: str, value: float
) -> Figure:
    """Return a figure proportional to the typical load; exact if the load is typed."""
    figure = Figure(_OUT[name], value)
    if asked.load is not None:
        return figure
    low, high = (value * share / found.load for share in LOAD_RANGE)
    return dataclasses.replace(figure, low=low, high=high)


def _build_steps(asked: PowerCoolingInputs, found: PowerCoolingResult) -> tuple[FormulaStep, ...]:
    node, nodes = format_term(found.node, "W"), format_term(asked.nodes)
    return (
        _WORKING.line(
            "nodes_per_rack",
            "least of ⌊rack power ÷ system⌋ and ⌊rack height ÷ system⌋",
            f"min(⌊{format_term(asked.rack_limit, 'W')} ÷ {node}⌋, ⌊{asked.rack_units} ÷ {found.units}⌋)",
            found.in_rack,
            "catalogue",
        ),
        _WORKING.line(
            "machines_power",
            "systems × highest power × (1 + network and storage)",
            f"{nodes} × {node} × {format_term(1 + asked.other)}",
            found.machines,
            "catalogue",
        ),
        _WORKING.line(
            "machines_typical",
            "highest × typical load",
            f"{format_term(found.machines, 'W')} × {format_term(found.load, '%')}",
            found.typical,
            "latif-2025",
        ),
        _WORKING.line(
            "site_power",
            "machines × PUE",
            f"{format_term(found.machines, 'W')} × {format_term(asked.pue)}",
            found.site,
            "iso-30134-2",
        ),
        *_rack_steps(asked, found),
        *_cooling_steps(asked, found),
        *_energy_steps(asked, found),
    )


def _rack_steps(asked: PowerCoolingInputs, found: PowerCoolingResult) -> tuple[FormulaStep, ...]:
    breaker = f"{format_term(asked.circuit)} A × {format_term(CONTINUOUS, '%')}"
    twice = {"2n": "2 × ", "n+1": "1 + ", "n": ""}[asked.feeds]
    return (
        _WORKING.line(
            "current",
            "power of a rack ÷ (√3 × voltage × power factor)",
            f"{format_term(found.rack, 'W')} ÷ (√3 × "
            f"{format_term(asked.voltage)} V × {format_term(asked.power_factor)})",
            found.current,
            "ieee-1459",
        ),
        _WORKING.line(
            "circuits",
            f"{twice}⌈current ÷ (breaker × {format_term(CONTINUOUS, '%')})⌉",
            f"{twice}⌈{format_term(found.current, 'A')} ÷ ({breaker})⌉",
            found.circuits,
            "nfpa-70",
        ),
    )


def _cooling_steps(asked: PowerCoolingInputs, found: PowerCoolingResult) -> tuple[FormulaStep, ...]:
    systems = asked.nodes * found.node
    shown = format_term(systems, "W")
    air = f"{shown} × {format_term(1 - found.liquid, '%')}"
    steps = [
        _WORKING.line(
            "heat_btu",
            "watts × 3.412, rounded",
            f"⌊{format_term(found.machines, 'W')} × 3.412 + 0.5⌋",
            round(heat_in_btu(found.machines)),
            "ashrae-datacom",
        ),
        _WORKING.line(
            "air",
            "heat to air ÷ (1.2 kg/m³ × 1,005 J/(kg·°C) × warming)",
            f"{air} ÷ (1.2 × 1,005 × {format_term(asked.air_rise)})",
            required_air_flow(asked, found, systems),
            "ashrae-datacom",
        ),
    ]
    if found.liquid:
        steps.append(
            _WORKING.line(
                "coolant",
                "heat to liquid ÷ (997 kg/m³ × 4,180 J/(kg·°C) × warming)",
                f"{shown} × {format_term(found.liquid, '%')} ÷ (997 × 4,180 × {format_term(asked.liquid_rise)})",
                required_coolant_flow(asked, found),
                "ashrae-datacom",
            )
        )
    return tuple(steps)


def _energy_steps(asked: PowerCoolingInputs, found: PowerCoolingResult) -> tuple[FormulaStep, ...]:
    return (
        _WORKING.line(
            "energy",
            "site, typical × running time",
            f"{format_term(found.site_typical, 'W')} × {format_term(asked.duration, 's')}",
            found.energy,
            "patterson-2021",
        ),
        _WORKING.line(
            "carbon",
            "energy × carbon intensity",
            f"{format_term(found.energy, 'Wh')} × {format_term(asked.carbon_intensity * 1000)} g/kWh",
            found.carbon,
            "patterson-2021",
        ),
    )


def _build_bar(asked: PowerCoolingInputs, found: PowerCoolingResult) -> StackedBar:
    """Return the maximum power of the site as a bar, GPUs first."""
    systems = asked.nodes * found.node
    gpus = found.gpus or 0.0
    named = BarSegment("weights", "GPUs", gpus)
    rest = "Rest of the systems" if gpus else "Systems"
    parts = (
        *((named,) if gpus else ()),
        BarSegment("kv", rest, systems - gpus),
        BarSegment("activations", "Network and storage", found.others),
        BarSegment("overhead", "Cooling and losses", found.site - found.machines),
    )
    limit = asked.site_limit
    words = f"{format_value(limit, 'W')} of the site" if limit else ""
    return StackedBar("Highest power of the site", parts, limit, words, "W")


def _build_table(found: PowerCoolingResult) -> ResultTable:
    rows = tuple(
        (
            words,
            (watts, "W"),
            (watts * found.load, "W"),
            (round(heat_in_btu(watts)), "BTU/h"),
        )
        for words, watts in (
            ("One system", found.node),
            ("A full rack", found.rack),
            ("All machines", found.machines),
            ("The site", found.site),
        )
    )
    columns = ("What", "Highest", "Typical", "Highest heat")
    return ResultTable("From the system to the site", columns, rows)


def _build_notes(asked: PowerCoolingInputs, found: PowerCoolingResult) -> tuple[str, ...]:
    notes = [_HIGHEST]
    if asked.load is None:
        notes.append(
            "Typical load is taken as 80%; measured servers with eight GPUs lie between 60 and 90%."
        )
    if found.rack * (1 - found.liquid) > _DENSE:
        notes.append(
            f"{format_value(found.rack * (1 - found.liquid), 'W')} of heat in the air "
            "of one rack is more than most buildings carry away."
        )
    notes.append(
        "Network, storage and management stand in racks of their own, which are not counted."
    )
    if found.liquid:
        notes.append(
            f"Liquid takes {format_value(found.liquid, '%')} of the heat of the "
            "systems, reckoned as water at sea level pressure."
        )
    notes.append("Air is reckoned at sea level; at 1,500 m it takes a fifth more.")
    return tuple(notes)


_HIGHEST = (
    "Racks, feeds and cooling are planned for the highest power; energy and carbon "
    "follow from the typical one."
)


def estimate(asked: PowerCoolingInputs) -> Estimate:
    """Size racks, feeds, cooling and energy for a number of systems."""
    return build_report(asked, compute_site(asked))


ENTRY = EstimateSpec(
    name="power-cooling",
    title="Power and cooling",
    summary="Racks, current, heat and air of a number of systems; energy and carbon.",
    group="Cluster",
    inputs=PowerCoolingInputs,
    answer=estimate,
    outputs=OUTPUTS,
    first=("racks", "machines_power", "site_power"),
    topic=TOPIC,
)
