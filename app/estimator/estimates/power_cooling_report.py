"""`power-cooling`: verdict, figures, charts and formula steps of a result."""

from collections.abc import Callable

from app.estimator.estimates.power_cooling import (
    BTU_PER_TON_HOUR,
    CONTINUOUS_LOAD_SHARE,
    CUBIC_FEET_PER_MINUTE,
    DENSE_RACK_WATTS,
    RACK_LIMIT,
    TOPIC,
    PowerCoolingInputs,
    PowerCoolingResult,
    compute_power_and_cooling,
    find_verdict_changes,
    heat_in_btu_per_hour,
)
from app.estimator.formula_steps import StepBuilder, format_term
from app.estimator.registry import EstimateSpec
from app.estimator.result import (
    BarSegment,
    Estimate,
    FormulaStep,
    ModeledOutput,
    OutputSpec,
    OutputValue,
    ResultTable,
    StackedBar,
    Verdict,
    read_figures,
    value_or_inapplicable,
)
from app.estimator.units import format_number, format_value

LOAD_RANGE = (0.6, 0.9)


def _typical_load_output(
    name: str,
    label: str,
    unit: str,
    read: Callable[[PowerCoolingResult], float],
    note: str = "",
) -> OutputSpec[PowerCoolingResult]:
    """Declare an output proportional to the typical load; exact if the load is typed."""

    def read_with_range(result: PowerCoolingResult) -> OutputValue:
        value = read(result)
        if result.inputs.load is not None:
            return OutputValue(value, note=note)
        low, high = (value * share / result.typical_load_share for share in LOAD_RANGE)
        return OutputValue(value, low, high, note)

    return ModeledOutput(name, label, unit, "less", read_with_range)


def _racks_value(result: PowerCoolingResult) -> OutputValue:
    note = "Without those of network and storage." if result.network_and_storage_power else ""
    if not result.racks:
        note = "No system fits in a rack."
    return OutputValue(result.racks, note=note, applies=result.racks is not None)


def _rack_power_value(result: PowerCoolingResult) -> OutputValue:
    note = "" if result.racks else "Of one system, which is more than a rack takes."
    return OutputValue(result.rack_power, note=note)


# That of a training has a range of its own, which training-time counts.
_GIVEN_TIME = "The running time is taken as given, without a range."
_COOLING_SIZE = (
    "By this the cooling is sized, not by the power of the site, which includes cooling."
)


def _all_machines_heat_btu_value(result: PowerCoolingResult) -> OutputValue:
    btu = round(heat_in_btu_per_hour(result.machines_power))
    tons = format_value(btu / BTU_PER_TON_HOUR)
    return OutputValue(btu, note=f"{tons} tons of refrigeration, of 12,000 BTU/h each.")


OUTPUTS: tuple[OutputSpec[PowerCoolingResult], ...] = (
    OutputSpec("racks", "Racks", better="less", read=_racks_value, primary=True),
    OutputSpec(
        "nodes_per_rack", "Systems per rack", better="more", read=lambda r: r.systems_per_rack
    ),
    OutputSpec("rack_power", "Power of a full rack", "W", "less", _rack_power_value),
    OutputSpec("machines_power", "Machines, highest", "W", "less", lambda r: r.machines_power),
    _typical_load_output(
        "machines_typical", "Machines, typical", "W", lambda r: r.typical_machines_power
    ),
    OutputSpec("site_power", "Site, highest", "W", "less", lambda r: r.site_power),
    _typical_load_output("site_typical", "Site, typical", "W", lambda r: r.typical_site_power),
    OutputSpec("current", "Current of a rack, each phase", "A", "less"),
    OutputSpec("circuits", "Circuits of a rack"),
    OutputSpec(
        "heat",
        "Heat of the machines, for the room's cooling",
        "W",
        "less",
        lambda r: OutputValue(r.machines_power, note=_COOLING_SIZE),
    ),
    OutputSpec("heat_btu", "The same in BTU/h", "BTU/h", "less", _all_machines_heat_btu_value),
    OutputSpec(
        "air",
        "Air through the systems",
        "m3/s",
        "less",
        lambda r: r.air_flow_for_heat_beside_liquid(r.max_systems_power),
    ),
    OutputSpec(
        "air_node",
        "Air through one system",
        "CFM",
        "less",
        lambda r: round(r.air_flow_for_heat_beside_liquid(r.system_power) * CUBIC_FEET_PER_MINUTE),
    ),
    OutputSpec(
        "coolant",
        "Coolant",
        "m3/s",
        "less",
        lambda r: value_or_inapplicable(
            r.needed_coolant_flow or None, "Air takes all heat of the systems."
        ),
    ),
    _typical_load_output("energy", "Energy", "Wh", lambda r: r.site_energy_wh, _GIVEN_TIME),
    _typical_load_output("carbon", "Carbon dioxide", "kg", lambda r: r.carbon_kg, _GIVEN_TIME),
    OutputSpec("fits", "Fits", better="more", read=lambda r: r.status != "no"),
)
_STEPS = StepBuilder(OUTPUTS, "power-and-cooling")


def estimate(inputs: PowerCoolingInputs) -> Estimate:
    result = compute_power_and_cooling(inputs)
    return Estimate(
        name="power-cooling",
        verdict=_build_verdict(result),
        figures=read_figures(OUTPUTS, result),
        steps=_build_steps(result),
        pictures=(_build_site_power_bar(result),),
        tables=(_build_power_and_heat_table(result),),
        notes=(*_assumed_rack_limit_notes(inputs, result), *_build_notes(result)),
        changes=find_verdict_changes(result),
    )


def _build_verdict(result: PowerCoolingResult) -> Verdict:
    inputs = result.inputs
    status = result.status
    name, most = result.system.name, format_value(result.system_power, "W")
    if result.racks is None:
        return Verdict(status, "Too dense for the racks.", _too_dense_text(result))
    site = format_value(result.site_power, "W")
    if status == "no":
        text = (
            f"{_systems_with_verb(inputs.nodes, name, 'needs')} {site} with cooling and "
            f"the site has {format_value(inputs.site_limit, 'W')}."
        )
        return Verdict(status, "Too much for the site.", text)
    limit, has_other_machines = inputs.site_limit, bool(result.network_and_storage_power)
    of = f" of the {format_value(limit, 'W')} that it has" if limit else ""
    each = min(result.systems_per_rack, inputs.nodes)
    systems = "one system" if each == 1 else f"{each} systems"
    racks = f"One rack with {systems}."
    if result.racks > 1:
        upto = "up to " if inputs.nodes % each else ""
        racks = f"{format_number(result.racks)} racks of {upto}{systems}."
    return Verdict(
        status,
        racks,
        f"{'Racks for network and storage come on top. ' * has_other_machines}"
        f"{_systems_with_verb(inputs.nodes, f'{name} of {most}', 'draws')} at most "
        f"{format_value(result.machines_power, 'W')}{' with network and storage' * has_other_machines}"
        f", and the site {site}{of}.{_lost_feed_text(result)}",
    )


def _systems_with_verb(nodes: int, name: str, verb: str) -> str:
    """Return a number of systems with a verb that agrees with it.

    >>> _systems_with_verb(1, "DGX H100", "draws"), _systems_with_verb(2, "DGX H100", "draws")
    ('One DGX H100 draws', '2 DGX H100 draw')
    """
    if nodes == 1:
        return f"One {name} {verb}"
    return f"{format_number(nodes)} {name} {verb.removesuffix('s')}"


def _lost_feed_text(result: PowerCoolingResult) -> str:
    """Return what fails if one of two feeds fails and a system needs over half its supplies.

    Half of the supplies are connected to each feed.
    """
    supplies, needed = result.system.power_supplies or 0, result.system.power_supplies_needed or 0
    if result.inputs.feeds != "2n" or supplies // 2 >= needed:
        return ""
    return (
        f" If one of the two feeds fails, {supplies // 2} of the {supplies} power "
        f"supplies of a system still work. Full power needs {needed}, so it keeps running, but slower."
    )


def _too_dense_text(result: PowerCoolingResult) -> str:
    inputs = result.inputs
    name = result.system.name
    if result.system_height_units > inputs.rack_units:
        return (
            f"The {name} is {result.system_height_units} units high and a rack {inputs.rack_units}."
        )
    most, limit = format_value(result.system_power, "W"), format_value(result.rack_limit, "W")
    return f"One {name} draws up to {most} and a rack has {limit}."


def _build_steps(result: PowerCoolingResult) -> tuple[FormulaStep, ...]:
    inputs = result.inputs
    node, nodes = format_term(result.system_power, "W"), format_term(inputs.nodes)
    return (
        _STEPS.build_step(
            "nodes_per_rack",
            "the smaller of ⌊rack power ÷ power of a system⌋ and ⌊rack height ÷ height of a system⌋",
            f"min(⌊{format_term(result.rack_limit, 'W')} ÷ {node}⌋, ⌊{inputs.rack_units} ÷ {result.system_height_units}⌋)",
            result.systems_per_rack,
            "catalogue",
        ),
        _STEPS.build_step(
            "machines_power",
            "systems × highest power × (1 + network and storage)",
            f"{nodes} × {node} × {format_term(1 + inputs.other)}",
            result.machines_power,
            "catalogue",
        ),
        _STEPS.build_step_from_template(
            "machines_typical",
            "[highest] × [typical load]",
            ((result.machines_power, "W"), (result.typical_load_share, "%")),
            result.typical_machines_power,
            "latif-2025",
        ),
        _STEPS.build_step_from_template(
            "site_power",
            "[machines] × [PUE]",
            ((result.machines_power, "W"), inputs.pue),
            result.site_power,
            "iso-30134-2",
        ),
        *_rack_circuit_steps(result),
        *_cooling_steps(result),
        *_energy_and_carbon_steps(result),
    )


def _rack_circuit_steps(result: PowerCoolingResult) -> tuple[FormulaStep, ...]:
    inputs = result.inputs
    breaker = f"{format_term(inputs.circuit)} A × {format_term(CONTINUOUS_LOAD_SHARE, '%')}"
    twice = {"2n": "2 × ", "n+1": "1 + ", "n": ""}[inputs.feeds]
    return (
        _STEPS.build_step(
            "current",
            "power of a rack ÷ (√3 × voltage × power factor)",
            f"{format_term(result.rack_power, 'W')} ÷ (√3 × "
            f"{format_term(inputs.voltage)} V × {format_term(inputs.power_factor)})",
            result.current,
            "ieee-1459",
        ),
        _STEPS.build_step(
            "circuits",
            f"{twice}⌈current ÷ (breaker × {format_term(CONTINUOUS_LOAD_SHARE, '%')})⌉",
            f"{twice}⌈{format_term(result.current, 'A')} ÷ ({breaker})⌉",
            result.circuits,
            "nfpa-70",
        ),
    )


def _cooling_steps(result: PowerCoolingResult) -> tuple[FormulaStep, ...]:
    shown = format_term(result.max_systems_power, "W")
    air = f"{shown} × {format_term(1 - result.liquid_cooled_share, '%')}"
    steps = [
        _STEPS.build_step(
            "heat_btu",
            "watts × 3.412, rounded",
            f"⌊{format_term(result.machines_power, 'W')} × 3.412 + 0.5⌋",
            round(heat_in_btu_per_hour(result.machines_power)),
            "ashrae-datacom",
        ),
        _STEPS.build_step(
            "air",
            "heat to air ÷ (1.2 kg/m³ × 1,005 J/(kg·°C) × warming)",
            f"{air} ÷ (1.2 × 1,005 × {format_term(result.inputs.air_rise)})",
            result.air_flow_for_heat_beside_liquid(result.max_systems_power),
            "ashrae-datacom",
        ),
    ]
    if result.liquid_cooled_share:
        steps.append(
            _STEPS.build_step(
                "coolant",
                "heat to liquid ÷ (997 kg/m³ × 4,180 J/(kg·°C) × warming)",
                f"{shown} × {format_term(result.liquid_cooled_share, '%')} ÷ "
                f"(997 × 4,180 × {format_term(result.inputs.liquid_rise)})",
                result.needed_coolant_flow,
                "ashrae-datacom",
            )
        )
    return tuple(steps)


def _energy_and_carbon_steps(result: PowerCoolingResult) -> tuple[FormulaStep, ...]:
    return (
        _STEPS.build_step_from_template(
            "energy",
            "[site, typical] × [running time]",
            ((result.typical_site_power, "W"), (result.inputs.duration, "s")),
            result.site_energy_wh,
            "patterson-2021",
        ),
        _STEPS.build_step(
            "carbon",
            "energy × carbon intensity",
            f"{format_term(result.site_energy_wh, 'Wh')} × {format_term(result.inputs.carbon_intensity * 1000)} g/kWh",
            result.carbon_kg,
            "patterson-2021",
        ),
    )


def _build_site_power_bar(result: PowerCoolingResult) -> StackedBar:
    """Return the maximum power of the site as a bar, GPUs first."""
    gpus = result.all_gpus_power or 0.0
    named = BarSegment("weights", "GPU power", gpus)
    rest = "Rest of the systems" if gpus else "Systems"
    parts = (
        *((named,) if gpus else ()),
        BarSegment("kv", rest, result.max_systems_power - gpus),
        BarSegment("activations", "Network and storage", result.network_and_storage_power),
        BarSegment("overhead", "Cooling and losses", result.site_power - result.machines_power),
    )
    limit = result.inputs.site_limit
    text = f"{format_value(limit, 'W')} of the site" if limit else ""
    return StackedBar("Highest power of the site", parts, limit, text, "W")


def _build_power_and_heat_table(result: PowerCoolingResult) -> ResultTable:
    rows = tuple(
        (
            text,
            (watts, "W"),
            (watts * result.typical_load_share, "W"),
            (round(heat_in_btu_per_hour(watts)), "BTU/h"),
        )
        for text, watts in (
            ("One system", result.system_power),
            ("A full rack", result.rack_power),
            ("All machines, which the room's cooling removes", result.machines_power),
            ("The site, with the cooling plant's own power", result.site_power),
        )
    )
    columns = ("What", "Highest", "Typical", "Highest heat given off")
    return ResultTable("From the system to the site", columns, rows)


def _assumed_rack_limit_notes(
    inputs: PowerCoolingInputs, result: PowerCoolingResult
) -> tuple[str, ...]:
    """Say which power of a rack is assumed, if none was given."""
    if inputs.rack_limit is not None:
        return ()
    limit = result.rack_limit
    reason = f", as much as one {result.system.name} draws" if limit > RACK_LIMIT else ""
    text = (
        f"{format_value(limit, 'W')} are assumed for a rack{reason}: write what the building gives."
    )
    return (text,)


def _build_notes(result: PowerCoolingResult) -> tuple[str, ...]:
    notes = [_HIGHEST_POWER_NOTE]
    if result.inputs.load is None:
        notes.append(
            "Typical load is taken as 80%; measured servers with eight GPUs lie between 60 and 90%."
        )
    if result.rack_air_heat > DENSE_RACK_WATTS:
        notes.append(
            f"{format_value(result.rack_air_heat, 'W')} of heat in the air "
            "of one rack is more than most buildings carry away."
        )
    if result.network_and_storage_power:
        notes.append(
            "Network, storage and management stand in racks of their own, which are not counted."
        )
    if result.liquid_cooled_share:
        notes.append(
            f"Liquid takes {format_value(result.liquid_cooled_share, '%')} of the heat of the "
            "systems, reckoned as water at sea level pressure."
        )
    notes.append("Air is reckoned at sea level; at 1,500 m it takes a fifth more.")
    return tuple(notes)


_HIGHEST_POWER_NOTE = (
    "Racks, feeds and cooling are planned for the highest power; energy and carbon "
    "follow from the typical one."
)


ENTRY = EstimateSpec(
    name="power-cooling",
    title="Power and cooling",
    summary="Racks, current, heat and air of a number of systems; energy and carbon.",
    group="Cluster",
    inputs_type=PowerCoolingInputs,
    compute_estimate=estimate,
    outputs=OUTPUTS,
    most_important_outputs=("racks", "nodes_per_rack", "machines_power", "site_power"),
    main_inputs=("system", "nodes", "rack_limit"),
    topic=TOPIC,
)
