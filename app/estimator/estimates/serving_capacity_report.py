"""`serving-capacity`: verdict, figures, charts and formula steps of a result."""

import math

from app.estimator.data_files import around_rate, error_range
from app.estimator.estimates.latency import validate_inputs
from app.estimator.estimates.serving_capacity import (
    ServingCapacityInputs,
    check_experts,
    compute_capacity,
    find_flips,
    profile_for,
    serving_setup,
)
from app.estimator.fits import capacity_note
from app.estimator.formula_steps import StepBuilder, format_term
from app.estimator.hardware.catalog import Accelerator, find_accelerator
from app.estimator.hardware.prices import UNKNOWN, hourly_price, price_note
from app.estimator.models.lookup import find_model
from app.estimator.registry import EstimateSpec
from app.estimator.result import (
    Chart,
    ChartLine,
    Estimate,
    Figure,
    FormulaStep,
    Output,
    ResultTable,
    Verdict,
    outputs_by_name,
)
from app.estimator.serving.replica import (
    BatchTiming,
    OperatingPoint,
    ReplicaProfile,
    best_batch,
    bracket_batch,
    operating_point,
    prefill_step_mix,
    saturated_rate,
    time_per_token,
)
from app.estimator.serving.simulation import CapacityResult, SimulationResult, quantile
from app.estimator.training.run_costs import usd_per_million_tokens
from app.estimator.units import format_number, format_value

SHARES = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
"""Percentiles by name, and the shares of requests that they mean."""


def target_share(inputs: ServingCapacityInputs) -> float:
    """Return the share of requests that must meet the targets [1]."""
    return next(share for name, share in SHARES if name == inputs.percentile)


def build_tables(
    inputs: ServingCapacityInputs, profile: ReplicaProfile, result: CapacityResult
) -> tuple[ResultTable, ...]:
    """Return a replica by load, with a simulation next to it if requested."""
    if not result.memory:
        return ()
    share, rows = target_share(inputs), []
    batch = 1.0
    top = best_batch(profile)
    while batch < 2 * top:
        settled = operating_point(profile, min(batch, top), (share,))
        rows.append(
            (
                format_number(round(settled.batch)),
                (settled.rate, "request/s"),
                (settled.ttft[share], "s"),
                (settled.tpot[share], "s"),
            )
        )
        batch *= 2
    columns = ("Requests at once", "Rate", "First token", "Per token")
    tables = [ResultTable("One replica by load", columns, tuple(rows))]
    if result.simulated is not None and result.settled is not None:
        tables.append(_simulation_table(result.simulated, result.settled))
    return tuple(tables)


def _simulation_table(outcome: SimulationResult, settled: OperatingPoint) -> ResultTable:
    rows = []
    for name, share in SHARES:
        first, pace = quantile(outcome.ttft, share), quantile(outcome.tpot, share)
        rows.append(
            (
                name,
                (settled.ttft[share], "s"),
                (first or 0.0, "s"),
                (settled.tpot[share], "s"),
                (pace or 0.0, "s"),
            )
        )
    columns = (
        "Share",
        "First token, formula",
        "First token, simulated",
        "Per token, formula",
        "Per token, simulated",
    )
    return ResultTable("Formula and simulation", columns, tuple(rows))


OUTPUTS = (
    Output("fits", "Meets the targets", better="more"),
    Output("replicas", "Replicas", better="less"),
    Output("gpus", "GPUs", "GPU", better="less"),
    Output("nodes", "Nodes", "node", better="less"),
    Output("ttft_p50", "p50 time to first token", "s", better="less", modeled=True),
    Output("ttft_p95", "p95 time to first token", "s", better="less", modeled=True),
    Output("ttft_p99", "p99 time to first token", "s", better="less", modeled=True),
    Output("tpot_p50", "p50 time per output token", "s", better="less", modeled=True),
    Output("tpot_p95", "p95 time per output token", "s", better="less", modeled=True),
    Output("tpot_p99", "p99 time per output token", "s", better="less", modeled=True),
    Output("throughput", "Output tokens per second", "token/s", better="more", modeled=True),
    Output(
        "requests_per_second",
        "Requests per second",
        "request/s",
        better="more",
        modeled=True,
    ),
    Output("max_rate", "Most requests per second", "request/s", better="more", modeled=True),
    Output(
        "saturated_throughput",
        "Output tokens per second, saturated",
        "token/s",
        better="more",
        modeled=True,
    ),
    Output("utilisation", "Utilization", "%"),
    Output("concurrent", "Requests at once on a replica"),
    Output("max_concurrent", "Most requests in memory of a replica", better="more"),
    Output("cost_per_month", "Cost per month", "USD/month", better="less"),
    Output(
        "cost_per_million_tokens",
        "Cost per million output tokens",
        "USD/Mtoken",
        better="less",
        modeled=True,
    ),
)
_OUT = outputs_by_name(OUTPUTS)
_WORKING = StepBuilder(_OUT, "batching-and-latency")


_HOURS = 730.5


def build_report(
    inputs: ServingCapacityInputs, profile: ReplicaProfile, result: CapacityResult
) -> Estimate:
    """Build the estimate: verdict, figures, latency curve and steps."""
    return Estimate(
        name="serving-capacity",
        verdict=_build_verdict(inputs, profile, result),
        figures=_build_figures(inputs, profile, result),
        steps=_build_steps(inputs, profile, result),
        pictures=_build_pictures(inputs, profile, result),
        tables=build_tables(inputs, profile, result),
        notes=(
            *_build_notes(inputs, profile, result),
            *price_note(profile.placed.gpu, inputs.cost_per_gpu_hour),
            capacity_note(profile.placed.gpu),
        ),
        changes=find_flips(inputs, result),
    )


def _total_gpus(inputs: ServingCapacityInputs, result: CapacityResult) -> int | None:
    if result.replicas is None:
        return None
    return (result.replicas + inputs.spare) * serving_setup(inputs).gpus


def _total_nodes(inputs: ServingCapacityInputs, result: CapacityResult) -> int | None:
    """Return the number of servers; a replica that fits in one server is not split."""
    if result.replicas is None:
        return None
    copies, gpus = result.replicas + inputs.spare, serving_setup(inputs).gpus
    each = inputs.gpus_per_node // gpus
    if each:
        return math.ceil(copies / each)
    return copies * math.ceil(gpus / inputs.gpus_per_node)


def _build_verdict(
    inputs: ServingCapacityInputs, profile: ReplicaProfile, result: CapacityResult
) -> Verdict:
    gpu = profile.placed.gpu.name
    if not result.memory:
        gpus = serving_setup(inputs).gpus
        text = f"The weights leave no room for a request on {gpus} {gpu}."
        return Verdict("no", "Does not fit.", text)
    if result.replicas is None:
        text = "Even one request alone is slower than the targets on this hardware."
        return Verdict("no", "Targets cannot be met.", text)
    gpus = serving_setup(inputs).gpus
    noun = "replica" if result.replicas == 1 else "replicas"
    copies = f"{format_number(result.replicas)} {noun} of {gpus} {gpu}"
    if inputs.spare:
        whole = format_value(_total_gpus(inputs, result), "GPU")
        copies += f" and {format_number(inputs.spare)} spare, {whole} in all"
    if result.settled is None:
        return Verdict("no", "Overloaded.", f"{copies} cannot keep up: queues grow.")
    first = format_value(result.settled.ttft[target_share(inputs)], "s")
    each = format_value(result.settled.tpot[target_share(inputs)], "s")
    text = f"{copies}: first token within {first}, then one every {each}."
    if not result.met:
        return Verdict("no", "Too slow.", text)
    busy = result.utilization or 0.0
    return Verdict(
        "tight" if busy > 0.9 else "fits",
        "Meets the targets, nearly full." if busy > 0.9 else "Meets the targets.",
        text,
    )


def _build_figures(
    inputs: ServingCapacityInputs, profile: ReplicaProfile, result: CapacityResult
) -> tuple[Figure, ...]:
    copies, settled = result.replicas or 0, result.settled
    rate = settled.rate * copies if settled and copies else None
    top = result.top.rate * copies if result.top and copies else None
    tokens = rate * inputs.output_tokens if rate is not None else None
    return (
        Figure(_OUT["fits"], result.met),
        _settled_figure("replicas", result.replicas),
        _settled_figure("gpus", _total_gpus(inputs, result)),
        _settled_figure("nodes", _total_nodes(inputs, result)),
        *_latency_figures(settled),
        _rate_figure("throughput", tokens),
        _rate_figure("requests_per_second", rate),
        _rate_figure("max_rate", top),
        _saturated_figure(inputs, profile, result),
        _settled_figure("utilisation", result.utilization),
        _settled_figure("concurrent", round(settled.batch, 1) if settled else None),
        Figure(_OUT["max_concurrent"], max(0, int(profile.most))),
        *_cost_figures(inputs, profile.placed.gpu, result, tokens),
    )


def _latency_figures(settled: OperatingPoint | None) -> tuple[Figure, ...]:
    figures = []
    for kind in ("ttft", "tpot"):
        for name, share in SHARES:
            value = getattr(settled, kind)[share] if settled else None
            bounds = error_range(kind, value or 0.0)
            figures.append(_settled_figure(f"{kind}_{name}", value, bounds))
    return tuple(figures)


def _settled_figure(
    name: str, value: float | None, pair: tuple[float, float] | None = None
) -> Figure:
    """Return a figure that exists only if the load can be served."""
    primary = name == "gpus"
    if value is None:
        note = "No load settles."
        return Figure(_OUT[name], None, note=note, primary=primary, applies=False)
    low, high = pair or (None, None)
    return Figure(_OUT[name], value, low, high, primary=primary)


def _rate_figure(name: str, value: float | None) -> Figure:
    return _settled_figure(name, value, around_rate("tpot", value or 0.0))


def _saturated_figure(
    inputs: ServingCapacityInputs, profile: ReplicaProfile, result: CapacityResult
) -> Figure:
    """Return the rate of all replicas when requests are always waiting."""
    output = _OUT["saturated_throughput"]
    if not result.memory or result.replicas is None:
        return _settled_figure(output.name, None)
    run = inputs.run_requests / result.replicas if inputs.run_requests else None
    value = saturated_rate(profile, run) * result.replicas * inputs.output_tokens
    return Figure(output, value, *around_rate("saturated", value))


def _cost_figures(
    inputs: ServingCapacityInputs, gpu: Accelerator, result: CapacityResult, tokens: float | None
) -> tuple[Figure, ...]:
    gpus, price = _total_gpus(inputs, result), hourly_price(gpu, inputs.cost_per_gpu_hour)
    if price is None:
        names = ("cost_per_month", "cost_per_million_tokens")
        return tuple(Figure(_OUT[name], None, note=UNKNOWN) for name in names)
    month, million = None, None
    if gpus is not None:
        month = gpus * price * _HOURS
        if tokens:
            million = usd_per_million_tokens(tokens, gpus, price)
    return _settled_figure("cost_per_month", month), _rate_figure(
        "cost_per_million_tokens", million
    )


def _build_steps(
    inputs: ServingCapacityInputs, profile: ReplicaProfile, result: CapacityResult
) -> tuple[FormulaStep, ...]:
    batch = result.settled.batch if result.settled else 1.0
    timed = profile.timed(batch)
    steps = [
        FormulaStep(
            "One decoding step",
            "between the timed steps of fewer and of more requests",
            _interpolation_text(profile.decode, timed.batch),
            timed.step,
            "s",
            "pope-2022",
            "batching-and-latency",
        ),
        FormulaStep(
            "What a prompt adds",
            "step with a prompt − step without, between fewer and more requests",
            _interpolation_text(profile.prompt, timed.batch),
            timed.cost,
            "s",
            "inferencex",
            "batching-and-latency",
        ),
        *_time_per_token_steps(profile, timed, inputs.output_tokens),
        FormulaStep(
            "Requests per second of a replica",
            "requests at once ÷ (first token + answer × per token)",
            f"{format_term(batch)} ÷ ({format_term(profile.ttft_at(batch), 's')} + "
            f"{format_term(inputs.output_tokens)} × "
            f"{format_term(profile.tpot_at(batch), 's')})",
            profile.rate_at(batch),
            "request/s",
            "little-1961",
            "batching-and-latency",
        ),
    ]
    if result.top is not None and result.replicas is not None:
        steps.append(_replica_step(inputs, result, result.top))
    return tuple(steps)


def _time_per_token_steps(
    profile: ReplicaProfile, timed: BatchTiming, answer: int
) -> tuple[FormulaStep, ...]:
    """Return the steps for engine steps with and without prompts, and the time per token."""
    step, cost = format_term(timed.step, "s"), format_term(timed.cost, "s")
    others = format_term(timed.batch - 1)
    share, mixed = prefill_step_mix(timed, answer)
    value = time_per_token(timed, answer)
    if timed.recorded == timed.step and mixed > timed.launching:
        simple = f"{step} + {others} × {cost} ÷ {format_term(answer)}"
        formula = "step + (requests − 1) × prompt ÷ answer"
        return (_WORKING.line("tpot_p50", formula, simple, value, "inferencex"),)
    each = f"{format_term((timed.batch - 1) / answer)} ÷ {format_term(share)}"
    filled = profile.placed.engine.filled(timed.batch)
    full = profile.timed(filled * profile.groups).step
    rows = (
        (
            "Steps that read prompts too",
            "1 − e^(−(requests − 1) ÷ answer)",
            f"1 − exp(−{others} ÷ {format_term(answer)})",
            share,
            "",
        ),
        (
            "Such a step",
            "step + prompts ÷ share of steps × prompt, or longer launches",
            f"max({step} + {each} × {cost}, {format_term(timed.launching, 's')})",
            mixed,
            "s",
        ),
        (
            "Another step",
            f"step of {format_number(filled)} requests − those that are not there",
            f"{format_term(full, 's')} − {format_term(full - timed.recorded, 's')}",
            timed.recorded,
            "s",
        ),
    )
    lines = [FormulaStep(*row, "inferencex", "batching-and-latency") for row in rows]
    part, alone = format_term(share), format_term(timed.recorded, "s")
    both = f"{part} × {format_term(mixed, 's')} + (1 − {part}) × {alone}"
    formula = "share × such a step + (1 − share) × another step"
    return *lines, _WORKING.line("tpot_p50", formula, both, value, "inferencex")


def _interpolation_text(values: tuple[float, ...], batch: float) -> str:
    """Return the interpolation between two computed times, as a formula."""
    below, above, part = bracket_batch(values, batch)
    low, high = format_term(below, "s"), format_term(above, "s")
    return f"{low} + {format_term(part)} × ({high} − {low})"


def _replica_step(
    inputs: ServingCapacityInputs, result: CapacityResult, top: OperatingPoint
) -> FormulaStep:
    if inputs.requests_per_second is not None:
        formula = "⌈rate × peak factor ÷ highest rate of one replica⌉"
        load, most = inputs.requests_per_second, top.rate
    else:
        formula = "⌈users × peak factor ÷ most users of one replica⌉"
        load, most = float(inputs.concurrent), top.batch
    numbers = f"⌈{format_term(load)} × {format_term(inputs.peak)} ÷ "
    return _WORKING.line(
        "replicas",
        "given" if inputs.replicas else formula,
        format_term(inputs.replicas) if inputs.replicas else f"{numbers}{format_term(most)}⌉",
        result.replicas or 0,
        "little-1961",
    )


def _build_pictures(
    inputs: ServingCapacityInputs, profile: ReplicaProfile, result: CapacityResult
) -> tuple[Chart, ...]:
    """Return latency over the load of one replica."""
    if not result.memory:
        return ()
    share, top = target_share(inputs), best_batch(profile)
    first, each = [], []
    for part in range(1, 21):
        settled = operating_point(profile, max(1.0, top * (part / 20) ** 2), (share,))
        first.append((settled.rate, settled.ttft[share]))
        each.append((settled.rate, settled.tpot[share] * inputs.output_tokens))
    lines = [
        ChartLine("First token", tuple(first)),
        ChartLine("Whole answer", tuple(each), "dash"),
    ]
    if result.settled is not None:
        here = (result.settled.rate, result.settled.ttft[share])
        lines.append(ChartLine("This load", (here,), "mark"))
    return (
        Chart(
            "Latency against load of one replica",
            "Requests per second",
            f"Time, {inputs.percentile}",
            "request/s",
            "s",
            tuple(lines),
            y_log=True,
        ),
    )


def _build_notes(
    inputs: ServingCapacityInputs, profile: ReplicaProfile, result: CapacityResult
) -> list[str]:
    label, front = profile.placed.engine.label, format_value(profile.placed.front, "s")
    notes = [
        f"{label}: {front} pass on the way to the engine and to launch a prompt.",
        "Requests arrive at random; bursts beyond that need the peak factor.",
    ]
    if inputs.spare:
        copies = "replica is" if inputs.spare == 1 else "replicas are"
        notes.append(f"{inputs.spare} spare {copies} counted in GPUs, nodes and cost.")
    if result.simulated is not None:
        served = format_number(result.simulated.served)
        notes.append(f"The simulated replica served {served} requests/s.")
    return notes


def estimate(inputs: ServingCapacityInputs) -> Estimate:
    """Find the number of replicas that meet the targets, and their latencies."""
    model, gpu = find_model(inputs.model), find_accelerator(inputs.gpu)
    validate_inputs(model, gpu, inputs.weights, inputs.tensor_parallel)
    check_experts(model, inputs)
    profile = profile_for(inputs)
    return build_report(inputs, profile, compute_capacity(inputs, profile))


ENTRY = EstimateSpec(
    name="serving-capacity",
    title="Serving capacity",
    summary="From users and latency targets to replicas, GPUs, nodes and cost.",
    group="Serving",
    inputs=ServingCapacityInputs,
    answer=estimate,
    outputs=OUTPUTS,
    first=("gpus", "throughput", "cost_per_million_tokens"),
    topic="batching-and-latency",
    is_search=True,
)
