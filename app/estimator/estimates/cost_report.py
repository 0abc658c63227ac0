"""`cost`: verdict, figures, charts and formula steps of a result."""

from app.estimator.estimates.cost import (
    ANY_RUN,
    CLUSTER_INFRASTRUCTURE,
    TOPIC,
    YEAR,
    CostInputs,
    CostResult,
    compute_cost,
    find_verdict_changes,
)
from app.estimator.formula_steps import StepBuilder, format_term, format_terms_of_exact_sum
from app.estimator.hardware.prices import default_rental_price_of_h100
from app.estimator.registry import EstimateSpec
from app.estimator.result import (
    BarSegment,
    Chart,
    ChartLine,
    Component,
    Estimate,
    FormulaStep,
    OutputSpec,
    OutputValue,
    ResultTable,
    StackedBar,
    TableCell,
    Verdict,
    read_figures,
    value_or_inapplicable,
)
from app.estimator.training.run_costs import HOURS_PER_YEAR
from app.estimator.units import format_value


def _payback_time(result: CostResult) -> OutputValue:
    yearly_saving = result.yearly_rental_cost_with_egress - result.ownership_cost.running_cost
    if yearly_saving > 0:
        return OutputValue(
            result.purchase / yearly_saving * YEAR, note="Without interest and resale."
        )
    note = "Renting costs less than running what was bought."
    return OutputValue(None, note=note, applies=False)


def _rented_hour_value(result: CostResult) -> OutputValue:
    rent, egress = (
        result.rental_cost_per_used_hour_without_egress,
        result.yearly_egress_cost / result.used_gpu_hours,
    )
    note = f"{format_value(rent, 'USD/h')} of rent and {format_value(egress, 'USD/h')} for data moved out."
    return OutputValue(result.rented_gpu_hour_with_egress, note=note if egress else "")


def _break_even_utilization_value(result: CostResult) -> OutputValue:
    if result.break_even_utilization is not None:
        return OutputValue(result.break_even_utilization)
    cheaper = "Owning" if result.buying else "Renting"
    return value_or_inapplicable(None, f"{cheaper} is cheaper at any utilization.")


OUTPUTS: tuple[OutputSpec[CostResult], ...] = (
    OutputSpec("owned_hour", "An hour of use of a GPU, owned", "USD/h", "less", primary=True),
    OutputSpec(
        "rented_hour",
        "An hour of use of a GPU, rented",
        "USD/h",
        "less",
        _rented_hour_value,
    ),
    OutputSpec("break_even", "Break-even utilization", "%", read=_break_even_utilization_value),
    OutputSpec("purchase", "Purchase", "USD", "less"),
    OutputSpec("owned_year", "Owned, a year", "USD/year", "less", lambda r: r.ownership_cost.total),
    OutputSpec(
        "rented_year",
        "Rented, a year",
        "USD/year",
        "less",
        lambda r: r.yearly_rental_cost_with_egress,
    ),
    OutputSpec(
        "saved",
        "Saved by owning over its life",
        "USD",
        "more",
        lambda r: (r.yearly_rental_cost_with_egress - r.ownership_cost.total) * r.life_years,
    ),
    OutputSpec("repaid", "Purchase repaid after", "s", "less", _payback_time),
    OutputSpec(
        "run_owned",
        "Training run, owned",
        "USD",
        "less",
        lambda r: r.inputs.run * r.owned_hour,
    ),
    OutputSpec(
        "run_rented",
        "Training run, rented",
        "USD",
        "less",
        lambda r: r.inputs.run * r.rental_cost_per_used_hour_without_egress,
    ),
    OutputSpec(
        "tokens_owned",
        "Million tokens, owned",
        "USD/Mtoken",
        "less",
        lambda r: r.million_tokens_cost(r.owned_hour),
    ),
    OutputSpec(
        "tokens_rented",
        "Million tokens, rented",
        "USD/Mtoken",
        "less",
        lambda r: r.million_tokens_cost(r.rented_gpu_hour_with_egress),
    ),
    OutputSpec("buying", "Owning is cheaper"),
)
_STEPS = StepBuilder(OUTPUTS, "on-premises-and-cloud")

# Smaller differences are within the uncertainty of prices.
_EQUAL_COST_SHARE = 0.05


def estimate(inputs: CostInputs) -> Estimate:
    result = compute_cost(inputs)
    return Estimate(
        name="cost",
        verdict=_build_verdict(result),
        figures=read_figures(OUTPUTS, result),
        steps=_build_steps(result),
        pictures=(_build_utilization_chart(result), _build_owned_hour_bar(result)),
        tables=(_build_utilization_table(result),),
        notes=_build_notes(result),
        changes=find_verdict_changes(result),
    )


def _build_verdict(result: CostResult) -> Verdict:
    if result.inputs.run != ANY_RUN:
        return _build_run_verdict(result)
    owned, rented = result.owned_hour, result.rented_gpu_hour_with_egress
    lead = "Buying is cheaper." if owned < rented else "Renting is cheaper."
    if abs(owned - rented) < _EQUAL_COST_SHARE * rented:
        lead = "About the same."
    meeting_text = (
        f"; they meet at {format_value(result.break_even_utilization, '%')}."
        if result.break_even_utilization
        else "."
    )
    return Verdict(
        "info",
        lead,
        f"At {format_value(result.inputs.utilisation, '%')} utilization a used GPU-hour costs "
        f"{format_value(owned, 'USD/h')} owned and {format_value(rented, 'USD/h')} "
        f"rented{meeting_text} {_describe_two_largest_ownership_costs(result)}",
    )


def _describe_two_largest_ownership_costs(result: CostResult) -> str:
    parts, total = result.ownership_cost.by_label, result.ownership_cost.total
    first, second = sorted(parts, key=lambda name: -parts[name])[:2]
    shares = [format_value(parts[name] / total, "%", 0) for name in (first, second)]
    return f"Of the owned hour, {shares[0]} is {first} and {shares[1]} {second}."


def _build_run_verdict(result: CostResult) -> Verdict:
    """Return what one run costs. Machines that are bought for it outlast it."""
    inputs = result.inputs
    rented = format_value(inputs.run * result.rental_cost_per_used_hour_without_egress, "USD")
    owned = format_value(inputs.run * result.owned_hour, "USD")
    return Verdict(
        "info",
        f"This run costs {rented} rented.",
        f"On machines of your own, which cost {format_value(result.purchase, 'USD')}, the same "
        f"hours cost {owned} if the machines are in use for "
        f"{format_value(inputs.utilisation, '%')} of {format_value(inputs.life, 's')}.",
    )


def _build_steps(result: CostResult) -> tuple[FormulaStep, ...]:
    inputs = result.inputs
    gpus = format_term(inputs.gpus)
    share = format_term(inputs.utilisation, "%")
    return (
        _STEPS.build_step(
            "purchase",
            "GPUs × price × (1 + network, storage and racks)",
            f"{gpus} × {format_term(inputs.price, 'USD')} × {format_term(1 + inputs.infrastructure)}",
            result.purchase,
            "barroso-2018",
        ),
        *_owned_steps(result),
        _STEPS.build_step(
            "owned_hour",
            "a year of owning ÷ used GPU-hours",
            f"{format_term(result.ownership_cost.total, 'USD/year')} ÷ "
            f"({gpus} × {format_term(HOURS_PER_YEAR)} h × {share})",
            result.owned_hour,
            "barroso-2018",
        ),
        *_rented_steps(result),
        *_break_even_steps(result),
        _STEPS.build_step(
            "tokens_owned",
            "owned GPU-hour ÷ (3,600 × tokens per second) × 10⁶",
            f"{format_term(result.owned_hour, 'USD/h')} ÷ (3,600 × {format_term(inputs.token_rate)}) × 1,000,000",
            result.million_tokens_cost(result.owned_hour),
            "barroso-2018",
        ),
        _STEPS.build_step_from_template(
            "run_owned",
            "[hours of the run] × [owned GPU-hour]",
            (inputs.run, (result.owned_hour, "USD/h")),
            inputs.run * result.owned_hour,
            "deepseek-v3",
        ),
    )


def _owned_steps(result: CostResult) -> tuple[FormulaStep, ...]:
    inputs = result.inputs
    owned = result.ownership_cost
    resale_price = inputs.gpus * inputs.price * inputs.resale
    kilowatts = inputs.gpus * inputs.power / 1000
    return (
        _STEPS.build_step(
            "owned_year",
            "(purchase − resale ÷ growth^years) × interest ÷ (1 − growth^(−years)), "
            "growth: 1 + interest"
            if inputs.interest
            else "(purchase − resale) ÷ years",
            _yearly_capital_formula(result, resale_price),
            owned.capital,
            "barroso-2018",
            label="Machines, a year",
        ),
        _STEPS.build_step(
            "owned_year",
            "kW × (idle + (1 − idle) × utilization) × hours × PUE × price",
            f"{format_term(kilowatts)} kW × ({format_term(inputs.idle)} + "
            f"{format_term(1 - inputs.idle)} × {format_term(inputs.utilisation)}) × "
            f"{format_term(HOURS_PER_YEAR)} h × {format_term(inputs.pue)} × "
            f"{format_term(inputs.electricity, 'USD/kWh')}",
            owned.electricity,
            "barroso-2018",
            label="Electricity, a year",
        ),
        _STEPS.build_step(
            "owned_year",
            "machines + support + electricity + place + staff",
            format_terms_of_exact_sum(owned.by_label.values(), "USD"),
            owned.total,
            "barroso-2018",
            label="A year of owning",
        ),
    )


def _yearly_capital_formula(result: CostResult, resale_price: float) -> str:
    """Return the yearly share of a price with interest, as a formula with numbers."""
    inputs = result.inputs
    purchase, resale = format_term(result.purchase, "USD"), format_term(resale_price, "USD")
    years, growth = format_term(result.life_years), format_term(1 + inputs.interest)
    if not inputs.interest:
        return f"({purchase} − {resale}) ÷ {years}"
    interest = format_term(inputs.interest)
    return f"({purchase} − {resale} ÷ {growth}^{years}) × {interest} ÷ (1 − {growth}^(−{years}))"


def _rented_steps(result: CostResult) -> tuple[FormulaStep, ...]:
    inputs = result.inputs
    is_reserved = inputs.commitment == "all"
    share = "" if is_reserved else f" × {format_term(inputs.utilisation, '%')}"
    return (
        _STEPS.build_step(
            "rented_year",
            f"GPUs × {'all' if is_reserved else 'used'} hours × rent × (1 − discount) + data moved out",
            f"{format_term(inputs.gpus)} × {format_term(HOURS_PER_YEAR)} h{share} × "
            f"{format_term(inputs.rent, 'USD/h')} × "
            f"{format_term(1 - inputs.discount)} + {format_term(result.yearly_egress_cost, 'USD')}",
            result.yearly_rental_cost_with_egress,
            "barroso-2018",
            label="A year of renting",
        ),
        _STEPS.build_step_from_template(
            "rented_hour",
            "[a year of renting] ÷ [used GPU-hours]",
            ((result.yearly_rental_cost_with_egress, "USD/year"), result.used_gpu_hours),
            result.rented_gpu_hour_with_egress,
            "barroso-2018",
        ),
    )


def _break_even_steps(result: CostResult) -> tuple[FormulaStep, ...]:
    if result.break_even_utilization is None:
        return ()
    owned, rented = result.owned_cost_by_utilization, result.rented_cost_by_utilization
    return (
        _STEPS.build_step_from_template(
            "break_even",
            "([owning] − [renting, a year at 0%]) ÷ ([rise of renting] − [rise of owning, from 0% to 100%])",
            (
                (owned.yearly_cost_idle, "USD"),
                (rented.yearly_cost_idle, "USD"),
                (rented.yearly_cost_fully_used - rented.yearly_cost_idle, "USD"),
                (owned.yearly_cost_fully_used - owned.yearly_cost_idle, "USD"),
            ),
            result.break_even_utilization,
            "barroso-2018",
        ),
    )


_CHART_UTILIZATIONS = (0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_TABLE_UTILIZATIONS = (0.2, 0.4, 0.6, 0.8, 1.0)


def _build_utilization_chart(result: CostResult) -> Chart:
    inputs = result.inputs
    rented_points = tuple((s, result.gpu_hour_costs(s).rented) for s in _CHART_UTILIZATIONS)
    owned_utilizations = [s for s in _CHART_UTILIZATIONS if s < inputs.availability]
    owned_points = tuple(
        (s, result.gpu_hour_costs(s).owned) for s in (*owned_utilizations, inputs.availability)
    )
    requested_point = (inputs.utilisation, result.owned_hour)
    return Chart(
        "Cost of a used GPU-hour by utilization",
        "Utilization",
        "Used GPU-hour",
        "%",
        "USD/h",
        (
            ChartLine("Owned", owned_points),
            ChartLine("Rented", rented_points, "dash"),
            ChartLine("Asked for", (requested_point,), "mark"),
        ),
    )


def _build_owned_hour_bar(result: CostResult) -> StackedBar:
    colors: tuple[Component, ...] = ("weights", "overhead", "activations", "kv", "optimizer")
    costs = result.ownership_cost.by_label.items()
    return StackedBar(
        "A used GPU-hour when owned",
        tuple(
            BarSegment(color, label.capitalize(), cost / result.used_gpu_hours)
            for color, (label, cost) in zip(colors, costs, strict=True)
        ),
        result.rented_gpu_hour_with_egress,
        f"{format_value(result.rented_gpu_hour_with_egress, 'USD/h')} rented",
        "USD/h",
    )


def _build_utilization_table(result: CostResult) -> ResultTable:
    rows = []
    for share in _TABLE_UTILIZATIONS:
        costs = result.gpu_hour_costs(share)
        cheaper = "Owned" if costs.owned < costs.rented else "Rented"
        owned_cell: TableCell = (costs.owned, "USD/h")
        if share > result.inputs.availability:
            owned_cell, cheaper = "not available that long", "Rented"
        rows.append(((share, "%"), owned_cell, (costs.rented, "USD/h"), cheaper))
    columns = ("Utilization", "Owned", "Rented", "Cheaper")
    return ResultTable("Used GPU-hour by utilization", columns, tuple(rows))


_PRICES_NOTE = (
    "All prices are the inputs; none is an offer, and what stands there before you "
    "write is an example."
)


_SERVER_GPUS = 8  # GPUs of a usual server.


def _build_notes(result: CostResult) -> tuple[str, ...]:
    inputs = result.inputs
    origin = f"They are of {inputs.priced_in}"
    if inputs.rent == default_rental_price_of_h100().usd_per_hour:
        origin += f"; the rent is {default_rental_price_of_h100().provider_and_date}"
    notes = [f"{_PRICES_NOTE} {origin}."]
    if inputs.commitment == "used":
        notes.append(
            "On demand, GPUs are given back when there is no work, and only used hours are paid; "
            "nobody promises that they are free again later. A reservation keeps them."
        )
    else:
        notes.append("A reservation is paid whether the GPUs work or not.")
    if inputs.gpus <= _SERVER_GPUS and inputs.infrastructure == CLUSTER_INFRASTRUCTURE:
        share = format_value(inputs.infrastructure, "%")
        notes.append(
            f"{share} of the servers' price is counted for network, storage and racks, as in a "
            "cluster; a single server needs no network between servers."
        )
    if result.break_even_utilization and result.break_even_utilization > inputs.availability:
        notes.append("The break-even lies above the availability, so owning never reaches it.")
    notes.append(
        "Not counted: the time until machines stand and run, taxes, and a cheaper next "
        "generation, which lowers rents and resale."
    )
    return tuple(notes)


ENTRY = EstimateSpec(
    name="cost",
    title="Rent or buy",
    summary="Renting against owning, with the utilization at which both cost the same.",
    group="Cluster",
    inputs_type=CostInputs,
    compute_estimate=estimate,
    outputs=OUTPUTS,
    most_important_outputs=("owned_hour", "rented_hour", "break_even"),
    main_inputs=("gpus", "utilisation", "rent"),
    topic=TOPIC,
)
