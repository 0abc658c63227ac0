"""`cost`: verdict, figures, charts and formula steps of a result."""

from app.estimator.estimates.cost import (
    TOPIC,
    CostInputs,
    CostResult,
    compute_cost,
    find_flips,
    tokens_cost,
)
from app.estimator.formula_steps import StepBuilder, format_sum, format_term
from app.estimator.hardware.prices import example_price
from app.estimator.registry import EstimateSpec
from app.estimator.result import (
    BarSegment,
    Chart,
    ChartLine,
    Estimate,
    Figure,
    FormulaStep,
    Output,
    ResultTable,
    StackedBar,
    Verdict,
    outputs_by_name,
)
from app.estimator.training.run_costs import HOURS_PER_YEAR
from app.estimator.units import format_value

OUTPUTS = (
    Output("owned_hour", "Owned, used GPU-hour", "USD/h", better="less"),
    Output("rented_hour", "Rented, used GPU-hour", "USD/h", better="less"),
    Output("break_even", "Break-even utilization", "%"),
    Output("purchase", "Purchase", "USD", better="less"),
    Output("owned_year", "Owned, a year", "USD/year", better="less"),
    Output("rented_year", "Rented, a year", "USD/year", better="less"),
    Output("saved", "Saved by owning over its life", "USD", better="more"),
    Output("repaid", "Purchase repaid after", "s", better="less"),
    Output("run_owned", "Training run, owned", "USD", better="less"),
    Output("run_rented", "Training run, rented", "USD", better="less"),
    Output("tokens_owned", "Million tokens, owned", "USD/Mtoken", better="less"),
    Output("tokens_rented", "Million tokens, rented", "USD/Mtoken", better="less"),
    Output("buying", "Owning is cheaper"),
)
_OUT = outputs_by_name(OUTPUTS)
_WORKING = StepBuilder(_OUT, "on-premises-and-cloud")


_YEAR = 365.25 * 86400


# Smaller differences are within the uncertainty of prices.
_EQUAL = 0.05


def build_report(asked: CostInputs, found: CostResult) -> Estimate:
    """Build the estimate: verdict, figures, charts and steps of both options."""
    return Estimate(
        name="cost",
        verdict=_build_verdict(asked, found),
        figures=_build_figures(asked, found),
        steps=_build_steps(asked, found),
        pictures=(_build_chart(asked, found), _build_bar(found)),
        tables=(_build_table(asked, found),),
        notes=_build_notes(asked, found),
        changes=find_flips(asked, found),
    )


def _build_verdict(asked: CostInputs, found: CostResult) -> Verdict:
    owned, rented = found.owned_hour, found.rented_hour
    lead = "Buying is cheaper." if owned < rented else "Renting is cheaper."
    if abs(owned - rented) < _EQUAL * rented:
        lead = "About the same."
    meet = f"; they meet at {format_value(found.meets, '%')}." if found.meets else "."
    return Verdict(
        "info",
        lead,
        f"At {format_value(asked.utilisation, '%')} utilization a used GPU-hour costs "
        f"{format_value(owned, 'USD/h')} owned and {format_value(rented, 'USD/h')} "
        f"rented{meet}",
    )


def _build_figures(asked: CostInputs, found: CostResult) -> tuple[Figure, ...]:
    gain = found.rented - found.owned.running
    per_hour = asked.rent * (1 - asked.discount)
    each = found.rented_hour if asked.commitment == "all" else per_hour
    return (
        Figure(_OUT["owned_hour"], found.owned_hour, primary=True),
        Figure(_OUT["rented_hour"], found.rented_hour),
        Figure(_OUT["break_even"], found.meets, note=_no_break_even_text(found)),
        Figure(_OUT["purchase"], found.purchase),
        Figure(_OUT["owned_year"], found.owned.total),
        Figure(_OUT["rented_year"], found.rented),
        Figure(_OUT["saved"], (found.rented - found.owned.total) * found.years),
        Figure(
            _OUT["repaid"],
            found.purchase / gain * _YEAR if gain > 0 else None,
            note="Without interest and resale."
            if gain > 0
            else "Renting costs less than running what was bought.",
            applies=gain > 0,
        ),
        Figure(_OUT["run_owned"], asked.run * found.owned_hour),
        Figure(_OUT["run_rented"], asked.run * each),
        Figure(_OUT["tokens_owned"], tokens_cost(asked, found.owned_hour)),
        Figure(_OUT["tokens_rented"], tokens_cost(asked, found.rented_hour)),
        Figure(_OUT["buying"], found.owned_hour < found.rented_hour),
    )


def _no_break_even_text(found: CostResult) -> str:
    if found.meets is not None:
        return ""
    cheaper = "Owning" if found.owned_hour < found.rented_hour else "Renting"
    return f"{cheaper} is cheaper at any utilization."


def _build_steps(asked: CostInputs, found: CostResult) -> tuple[FormulaStep, ...]:
    gpus = format_term(asked.gpus)
    share = format_term(asked.utilisation, "%")
    return (
        _WORKING.line(
            "purchase",
            "GPUs × price × (1 + network, storage and racks)",
            f"{gpus} × {format_term(asked.price, 'USD')} × {format_term(1 + asked.infrastructure)}",
            found.purchase,
            "barroso-2018",
        ),
        *_owned_steps(asked, found),
        _WORKING.line(
            "owned_hour",
            "a year of owning ÷ used GPU-hours",
            f"{format_term(found.owned.total, 'USD/year')} ÷ "
            f"({gpus} × {format_term(HOURS_PER_YEAR)} h × {share})",
            found.owned_hour,
            "barroso-2018",
        ),
        *_rented_steps(asked, found),
        *_break_even_steps(found),
        _WORKING.line(
            "tokens_owned",
            "owned GPU-hour ÷ (3,600 × tokens per second) × 10⁶",
            f"{format_term(found.owned_hour, 'USD/h')} ÷ (3,600 × {format_term(asked.token_rate)}) × 1,000,000",
            tokens_cost(asked, found.owned_hour),
            "barroso-2018",
        ),
        _WORKING.line(
            "run_owned",
            "hours of the run × owned GPU-hour",
            f"{format_term(asked.run)} × {format_term(found.owned_hour, 'USD/h')}",
            asked.run * found.owned_hour,
            "deepseek-v3",
        ),
    )


def _owned_steps(asked: CostInputs, found: CostResult) -> tuple[FormulaStep, ...]:
    owned = found.owned
    sold = asked.gpus * asked.price * asked.resale
    kilowatts = asked.gpus * asked.power / 1000
    return (
        _WORKING.line(
            "owned_year",
            "(purchase − resale ÷ growth^years) × interest ÷ (1 − growth^(−years)), "
            "growth: 1 + interest"
            if asked.interest
            else "(purchase − resale) ÷ years",
            _yearly_share_text(asked, found, sold),
            owned.capital,
            "barroso-2018",
            label="Machines, a year",
        ),
        _WORKING.line(
            "owned_year",
            "kW × (idle + (1 − idle) × utilization) × hours × PUE × price",
            f"{format_term(kilowatts)} kW × ({format_term(asked.idle)} + "
            f"{format_term(1 - asked.idle)} × {format_term(asked.utilisation)}) × "
            f"{format_term(HOURS_PER_YEAR)} h × {format_term(asked.pue)} × "
            f"{format_term(asked.electricity, 'USD/kWh')}",
            owned.electricity,
            "barroso-2018",
            label="Electricity, a year",
        ),
        _WORKING.line(
            "owned_year",
            "machines + support + electricity + place + staff",
            format_sum(
                (
                    owned.capital,
                    owned.upkeep,
                    owned.electricity,
                    owned.place,
                    owned.staff,
                ),
                "USD",
            ),
            owned.total,
            "barroso-2018",
            label="A year of owning",
        ),
    )


def _yearly_share_text(asked: CostInputs, found: CostResult, sold: float) -> str:
    """Return the yearly share of a price with interest, as a formula with numbers."""
    bought, resale = format_term(found.purchase, "USD"), format_term(sold, "USD")
    years, growth = format_term(found.years), format_term(1 + asked.interest)
    if not asked.interest:
        return f"({bought} − {resale}) ÷ {years}"
    interest = format_term(asked.interest)
    return f"({bought} − {resale} ÷ {growth}^{years}) × {interest} ÷ (1 − {growth}^(−{years}))"


def _rented_steps(asked: CostInputs, found: CostResult) -> tuple[FormulaStep, ...]:
    every = asked.commitment == "all"
    share = "" if every else f" × {format_term(asked.utilisation, '%')}"
    return (
        _WORKING.line(
            "rented_year",
            f"GPUs × {'all' if every else 'used'} hours × rent × (1 − discount) + data moved out",
            f"{format_term(asked.gpus)} × {format_term(HOURS_PER_YEAR)} h{share} × "
            f"{format_term(asked.rent, 'USD/h')} × "
            f"{format_term(1 - asked.discount)} + {format_term(found.egress, 'USD')}",
            found.rented,
            "barroso-2018",
            label="A year of renting",
        ),
        _WORKING.line(
            "rented_hour",
            "a year of renting ÷ used GPU-hours",
            f"{format_term(found.rented, 'USD/year')} ÷ {format_term(found.hours)}",
            found.rented_hour,
            "barroso-2018",
        ),
    )


def _break_even_steps(found: CostResult) -> tuple[FormulaStep, ...]:
    if found.meets is None:
        return ()
    (idle, full), (none, every) = found.ends, found.rent_ends
    return (
        _WORKING.line(
            "break_even",
            "(owning − renting, a year at 0%) ÷ (rise of renting − rise of owning, "
            "from 0% to 100%)",
            f"({format_term(idle, 'USD')} − {format_term(none, 'USD')}) ÷ "
            f"({format_term(every - none, 'USD')} − {format_term(full - idle, 'USD')})",
            found.meets,
            "barroso-2018",
        ),
    )


_SHARES = (0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


_CHART_UTILIZATIONS = (0.2, 0.4, 0.6, 0.8, 1.0)


def _build_chart(asked: CostInputs, found: CostResult) -> Chart:
    hours = asked.gpus * HOURS_PER_YEAR
    theirs = tuple((share, found.hour_at(share, hours)[1]) for share in _SHARES)
    up = [share for share in _SHARES if share < asked.availability]
    mine = tuple((s, found.hour_at(s, hours)[0]) for s in (*up, asked.availability))
    here = (asked.utilisation, found.owned_hour)
    return Chart(
        "Cost of a used GPU-hour by utilization",
        "Utilization",
        "Used GPU-hour",
        "%",
        "USD/h",
        (
            ChartLine("Owned", mine),
            ChartLine("Rented", theirs, "dash"),
            ChartLine("Asked for", (here,), "mark"),
        ),
    )


def _build_bar(found: CostResult) -> StackedBar:
    owned, hours = found.owned, found.hours
    return StackedBar(
        "A used GPU-hour when owned",
        (
            BarSegment("weights", "Machines", owned.capital / hours),
            BarSegment("overhead", "Support and repair", owned.upkeep / hours),
            BarSegment("activations", "Electricity", owned.electricity / hours),
            BarSegment("kv", "Place", owned.place / hours),
            BarSegment("optimizer", "Staff", owned.staff / hours),
        ),
        found.rented_hour,
        f"{format_value(found.rented_hour, 'USD/h')} rented",
        "USD/h",
    )


def _build_table(asked: CostInputs, found: CostResult) -> ResultTable:
    rows = []
    for share in _CHART_UTILIZATIONS:
        owned, rented = found.hour_at(share, asked.gpus * HOURS_PER_YEAR)
        cheaper = "Owned" if owned < rented else "Rented"
        mine: str | tuple[float, str] = (owned, "USD/h")
        if share > asked.availability:
            mine, cheaper = "not available that long", "Rented"
        rows.append(((share, "%"), mine, (rented, "USD/h"), cheaper))
    columns = ("Utilization", "Owned", "Rented", "Cheaper")
    return ResultTable("Used GPU-hour by utilization", columns, tuple(rows))


_PRICES = (
    "All prices are the inputs; none is an offer, and what stands there before you "
    "write is an example."
)


def _build_notes(asked: CostInputs, found: CostResult) -> tuple[str, ...]:
    of = f"They are of {asked.priced_in}"
    if asked.rent == example_price().usd_per_hour:
        of += f"; the rent is {example_price().words}"
    notes = [f"{_PRICES} {of}."]
    if asked.commitment == "used":
        notes.append("On demand, hours without work cost nothing; nor are they kept.")
    else:
        notes.append("A reservation is paid whether the GPUs work or not.")
    if found.meets and found.meets > asked.availability:
        notes.append("The break-even lies above the availability, so owning never reaches it.")
    notes.append(
        "Not counted: the time until machines stand and run, taxes, and a cheaper next "
        "generation, which lowers rents and resale."
    )
    return tuple(notes)


def estimate(asked: CostInputs) -> Estimate:
    """Compare a year of renting with a year of owning."""
    return build_report(asked, compute_cost(asked))


ENTRY = EstimateSpec(
    name="cost",
    title="Rent or buy",
    summary="Renting against owning, with the utilization at which both cost the same.",
    group="Cluster",
    inputs=CostInputs,
    answer=estimate,
    outputs=OUTPUTS,
    first=("owned_hour", "rented_hour", "break_even"),
    topic=TOPIC,
)
