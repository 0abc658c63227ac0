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


def build_report(inputs: PowerCoolingInputs, result: PowerCoolingResult) -> Estimate:
    """Build the estimate: verdict, figures, bar and steps of a site."""
    return Estimate(
        name="power-cooling",
        verdict=_build_verdict(inputs, result),
        figures=_build_figures(inputs, result),
        steps=_build_steps(inputs, result),
        pictures=(_build_bar(inputs, result),),
        tables=(_build_table(result),),
        notes=_build_notes(inputs, result),
        changes=find_flips(inputs, result),
    )


def site_status(inputs: PowerCoolingInputs, result: PowerCoolingResult) -> Status:
    """Return `no` if a system does not fit in a rack or the site lacks the power."""
    limit = inputs.site_limit
    if result.racks is None or (limit is not None and result.site > limit):
        return "no"
    near = limit is not None and result.site > _TIGHT * limit
    hot = result.rack * (1 - result.liquid) > _DENSE
    return "tight" if near or hot else "fits"


def _build_verdict(inputs: PowerCoolingInputs, result: PowerCoolingResult) -> Verdict:
    status = site_status(inputs, result)
    name, most = result.system.name, format_value(result.node, "W")
    if result.racks is None:
        return Verdict(status, "Too dense for the racks.", _too_dense(inputs, result))
    site = format_value(result.site, "W")
    if status == "no":
        text = (
            f"{format_number(inputs.nodes)} {name} need {site} with their cooling and "
            f"the site has {format_value(inputs.site_limit, 'W')}."
        )
        return Verdict(status, "Too much for the site.", text)
    limit = inputs.site_limit
    of = f" of the {format_value(limit, 'W')} that it has" if limit else ""
    racks = "One rack" if result.racks == 1 else f"{format_number(result.racks)} racks"
    each = "one system" if result.in_rack == 1 else f"{result.in_rack} systems"
    return Verdict(
        status,
        f"{racks} of {each}.",
        f"{format_number(inputs.nodes)} {name} of {most} draw at most "
        f"{format_value(result.machines, 'W')} with their network and storage, and the "
        f"site {site}{of}.{_lost_feed_text(inputs, result)}",
    )


def _lost_feed_text(inputs: PowerCoolingInputs, result: PowerCoolingResult) -> str:
    """Return what fails if one of two feeds fails and a system needs over half its supplies.

    Half of the supplies are connected to each feed.
    """
    if inputs.feeds != "2n" or result.short is None:
        return ""
    left, needed = result.short
    return (
        f" Without one of two feeds a system keeps {left} of its "
        f"{result.system.power_supplies} supplies and needs {needed} for full power: "
        "it runs on, slower."
    )


def _too_dense(inputs: PowerCoolingInputs, result: PowerCoolingResult) -> str:
    name = result.system.name
    if result.units > inputs.rack_units:
        return f"The {name} is {result.units} units high and a rack {inputs.rack_units}."
    most, limit = format_value(result.node, "W"), format_value(inputs.rack_limit, "W")
    return f"One {name} draws up to {most} and a rack has {limit}."


def _coolant_figure(inputs: PowerCoolingInputs, result: PowerCoolingResult) -> Figure:
    if result.liquid:
        return Figure(_OUT["coolant"], required_coolant_flow(inputs, result))
    note = "Air takes all heat of the systems."
    return Figure(_OUT["coolant"], None, note=note, applies=False)


def _build_figures(inputs: PowerCoolingInputs, result: PowerCoolingResult) -> tuple[Figure, ...]:
    heat = result.machines
    systems = inputs.nodes * result.node
    per_node = required_air_flow(inputs, result, result.node) * CUBIC_FEET_PER_MINUTE
    dense = "" if result.racks else "No system fits in a rack."
    one = "" if result.racks else "Of one system, which is more than a rack takes."
    return (
        Figure(
            _OUT["racks"],
            result.racks,
            note=dense,
            primary=True,
            applies=result.racks is not None,
        ),
        Figure(_OUT["nodes_per_rack"], result.in_rack),
        Figure(_OUT["rack_power"], result.rack, note=one),
        Figure(_OUT["machines_power"], result.machines),
        _typical_figure(inputs, result, "machines_typical", result.machines),
        Figure(_OUT["site_power"], result.site),
        _typical_figure(inputs, result, "site_typical", result.site),
        Figure(_OUT["current"], result.current),
        Figure(_OUT["circuits"], result.circuits),
        Figure(_OUT["heat"], heat),
        Figure(_OUT["heat_btu"], round(heat_in_btu(heat))),
        Figure(_OUT["air"], required_air_flow(inputs, result, systems)),
        Figure(_OUT["air_node"], round(per_node)),
        _coolant_figure(inputs, result),
        _load_scaled_figure(inputs, result, "energy", result.energy),
        _load_scaled_figure(inputs, result, "carbon", result.carbon),
        Figure(_OUT["fits"], site_status(inputs, result) != "no"),
    )


def _typical_figure(
    inputs: PowerCoolingInputs, result: PowerCoolingResult, name: str, most: float
) -> Figure:
    return _load_scaled_figure(inputs, result, name, most * result.load)


def _load_scaled_figure(
    inputs: PowerCoolingInputs, result: PowerCoolingResult, name: str, value: float
) -> Figure:
    """Return a figure proportional to the typical load; exact if the load is typed."""
    figure = Figure(_OUT[name], value)
    if inputs.load is not None:
        return figure
    low, high = (value * share / result.load for share in LOAD_RANGE)
    return dataclasses.replace(figure, low=low, high=high)


def _build_steps(inputs: PowerCoolingInputs, result: PowerCoolingResult) -> tuple[FormulaStep, ...]:
    node, nodes = format_term(result.node, "W"), format_term(inputs.nodes)
    return (
        _WORKING.line(
            "nodes_per_rack",
            "least of ⌊rack power ÷ system⌋ and ⌊rack height ÷ system⌋",
            f"min(⌊{format_term(inputs.rack_limit, 'W')} ÷ {node}⌋, ⌊{inputs.rack_units} ÷ {result.units}⌋)",
            result.in_rack,
            "catalogue",
        ),
        _WORKING.line(
            "machines_power",
            "systems × highest power × (1 + network and storage)",
            f"{nodes} × {node} × {format_term(1 + inputs.other)}",
            result.machines,
            "catalogue",
        ),
        _WORKING.line(
            "machines_typical",
            "highest × typical load",
            f"{format_term(result.machines, 'W')} × {format_term(result.load, '%')}",
            result.typical,
            "latif-2025",
        ),
        _WORKING.line(
            "site_power",
            "machines × PUE",
            f"{format_term(result.machines, 'W')} × {format_term(inputs.pue)}",
            result.site,
            "iso-30134-2",
        ),
        *_rack_steps(inputs, result),
        *_cooling_steps(inputs, result),
        *_energy_steps(inputs, result),
    )


def _rack_steps(inputs: PowerCoolingInputs, result: PowerCoolingResult) -> tuple[FormulaStep, ...]:
    breaker = f"{format_term(inputs.circuit)} A × {format_term(CONTINUOUS, '%')}"
    twice = {"2n": "2 × ", "n+1": "1 + ", "n": ""}[inputs.feeds]
    return (
        _WORKING.line(
            "current",
            "power of a rack ÷ (√3 × voltage × power factor)",
            f"{format_term(result.rack, 'W')} ÷ (√3 × "
            f"{format_term(inputs.voltage)} V × {format_term(inputs.power_factor)})",
            result.current,
            "ieee-1459",
        ),
        _WORKING.line(
            "circuits",
            f"{twice}⌈current ÷ (breaker × {format_term(CONTINUOUS, '%')})⌉",
            f"{twice}⌈{format_term(result.current, 'A')} ÷ ({breaker})⌉",
            result.circuits,
            "nfpa-70",
        ),
    )


def _cooling_steps(
    inputs: PowerCoolingInputs, result: PowerCoolingResult
) -> tuple[FormulaStep, ...]:
    systems = inputs.nodes * result.node
    shown = format_term(systems, "W")
    air = f"{shown} × {format_term(1 - result.liquid, '%')}"
    steps = [
        _WORKING.line(
            "heat_btu",
            "watts × 3.412, rounded",
            f"⌊{format_term(result.machines, 'W')} × 3.412 + 0.5⌋",
            round(heat_in_btu(result.machines)),
            "ashrae-datacom",
        ),
        _WORKING.line(
            "air",
            "heat to air ÷ (1.2 kg/m³ × 1,005 J/(kg·°C) × warming)",
            f"{air} ÷ (1.2 × 1,005 × {format_term(inputs.air_rise)})",
            required_air_flow(inputs, result, systems),
            "ashrae-datacom",
        ),
    ]
    if result.liquid:
        steps.append(
            _WORKING.line(
                "coolant",
                "heat to liquid ÷ (997 kg/m³ × 4,180 J/(kg·°C) × warming)",
                f"{shown} × {format_term(result.liquid, '%')} ÷ (997 × 4,180 × {format_term(inputs.liquid_rise)})",
                required_coolant_flow(inputs, result),
                "ashrae-datacom",
            )
        )
    return tuple(steps)


def _energy_steps(
    inputs: PowerCoolingInputs, result: PowerCoolingResult
) -> tuple[FormulaStep, ...]:
    return (
        _WORKING.line(
            "energy",
            "site, typical × running time",
            f"{format_term(result.site_typical, 'W')} × {format_term(inputs.duration, 's')}",
            result.energy,
            "patterson-2021",
        ),
        _WORKING.line(
            "carbon",
            "energy × carbon intensity",
            f"{format_term(result.energy, 'Wh')} × {format_term(inputs.carbon_intensity * 1000)} g/kWh",
            result.carbon,
            "patterson-2021",
        ),
    )


def _build_bar(inputs: PowerCoolingInputs, result: PowerCoolingResult) -> StackedBar:
    """Return the maximum power of the site as a bar, GPUs first."""
    systems = inputs.nodes * result.node
    gpus = result.gpus or 0.0
    named = BarSegment("weights", "GPUs", gpus)
    rest = "Rest of the systems" if gpus else "Systems"
    parts = (
        *((named,) if gpus else ()),
        BarSegment("kv", rest, systems - gpus),
        BarSegment("activations", "Network and storage", result.others),
        BarSegment("overhead", "Cooling and losses", result.site - result.machines),
    )
    limit = inputs.site_limit
    words = f"{format_value(limit, 'W')} of the site" if limit else ""
    return StackedBar("Highest power of the site", parts, limit, words, "W")


def _build_table(result: PowerCoolingResult) -> ResultTable:
    rows = tuple(
        (
            words,
            (watts, "W"),
            (watts * result.load, "W"),
            (round(heat_in_btu(watts)), "BTU/h"),
        )
        for words, watts in (
            ("One system", result.node),
            ("A full rack", result.rack),
            ("All machines", result.machines),
            ("The site", result.site),
        )
    )
    columns = ("What", "Highest", "Typical", "Highest heat")
    return ResultTable("From the system to the site", columns, rows)


def _build_notes(inputs: PowerCoolingInputs, result: PowerCoolingResult) -> tuple[str, ...]:
    notes = [_HIGHEST]
    if inputs.load is None:
        notes.append(
            "Typical load is taken as 80%; measured servers with eight GPUs lie between 60 and 90%."
        )
    if result.rack * (1 - result.liquid) > _DENSE:
        notes.append(
            f"{format_value(result.rack * (1 - result.liquid), 'W')} of heat in the air "
            "of one rack is more than most buildings carry away."
        )
    notes.append(
        "Network, storage and management stand in racks of their own, which are not counted."
    )
    if result.liquid:
        notes.append(
            f"Liquid takes {format_value(result.liquid, '%')} of the heat of the "
            "systems, reckoned as water at sea level pressure."
        )
    notes.append("Air is reckoned at sea level; at 1,500 m it takes a fifth more.")
    return tuple(notes)


_HIGHEST = (
    "Racks, feeds and cooling are planned for the highest power; energy and carbon "
    "follow from the typical one."
)


def estimate(inputs: PowerCoolingInputs) -> Estimate:
    """Size racks, feeds, cooling and energy for a number of systems."""
    return build_report(inputs, compute_site(inputs))


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
