"""`deployment`: verdict, figures and formula steps of a result."""

import dataclasses
from typing import Any, NamedTuple

from app.estimator.estimates.composition import LEFT_OUT, NOTE, declare_section_output
from app.estimator.estimates.deployment import (
    TARGET_LABELS,
    DeploymentInputs,
    DeploymentResult,
    compute_deployment,
    format_typed_latency_target,
)
from app.estimator.estimates.serving_capacity import (
    ServingCapacityInputs,
    build_request_pattern,
    build_serving_setup,
    place_replica_model,
)
from app.estimator.estimates.serving_capacity_report import (
    no_split_meets_targets_notes,
    requests_beyond_max_context_note,
    split_chosen_notes,
)
from app.estimator.formula_steps import StepBuilder, Term
from app.estimator.hardware.prices import rental_price_source_notes
from app.estimator.memory_verdict import LONGER_CONTEXT_LEAD, add_max_num_seqs_change
from app.estimator.models.lookup import find_model
from app.estimator.registry import EstimateSpec
from app.estimator.result import (
    Estimate,
    FormulaStep,
    InputChange,
    ModeledOutput,
    OutputSpec,
    OutputValue,
    SubEstimate,
    Verdict,
    VerdictChange,
    read_figures,
)
from app.estimator.serving.replica_memory import find_max_num_seqs_refusal_of_replica
from app.estimator.units import (
    format_count,
    format_number,
    format_value,
    round_estimate_to_three_digits,
)

_CAPACITY_ESTIMATE_NAME = "serving-capacity"


def _serves_within_targets_value(result: DeploymentResult) -> OutputValue:
    if result.relaxed_target_by_input:
        return OutputValue(False, note="Later than the targets.")
    figure = _capacity_section(result).estimate["fits"]
    return OutputValue(figure.value, note=figure.note)


def _system_count_value(result: DeploymentResult) -> OutputValue:
    if not result.nodes:
        return OutputValue(None, applies=False)
    figure = _capacity_section(result).estimate["nodes"]
    return OutputValue(result.nodes, figure.low, figure.high, unbounded=True)


def _declare_section_output_without_bounds(
    name: str, label: str, unit: str, section: str
) -> OutputSpec[Any]:
    """Declare a figure that is exact within its section and rests on modeled numbers of GPUs."""

    def read(result: DeploymentResult) -> OutputValue:
        found = result.find_figure(section, name)
        if found is None:
            return LEFT_OUT
        return OutputValue(found.value, note=found.note, applies=found.applies, unbounded=True)

    return ModeledOutput(name, label, unit, "less", read)


OUTPUTS: tuple[OutputSpec[DeploymentResult], ...] = (
    OutputSpec("fits", "Keeps up", better="more", read=_serves_within_targets_value),
    declare_section_output(
        "gpus", "GPUs", "GPU", "less", _CAPACITY_ESTIMATE_NAME, is_modeled=True, is_primary=True
    ),
    declare_section_output(
        "replicas", "Replicas", "", "", _CAPACITY_ESTIMATE_NAME, is_modeled=True
    ),
    ModeledOutput("nodes", "Systems", better="less", read=_system_count_value),
    declare_section_output("weights", "Weights", "B", "less", "weights", "total"),
    declare_section_output(
        "per_gpu", "Memory on each GPU", "B", "less", "inference-memory", is_modeled=True
    ),
    declare_section_output(
        "ttft_p95", "p95 time to first token", "s", "less", _CAPACITY_ESTIMATE_NAME, is_modeled=True
    ),
    declare_section_output(
        "tpot_p95",
        "p95 time per output token",
        "s",
        "less",
        _CAPACITY_ESTIMATE_NAME,
        is_modeled=True,
    ),
    declare_section_output(
        "throughput",
        "Output tokens per second",
        "token/s",
        "more",
        _CAPACITY_ESTIMATE_NAME,
        is_modeled=True,
    ),
    declare_section_output(
        "cost_per_month",
        "Cost, rented",
        "USD/month",
        "less",
        _CAPACITY_ESTIMATE_NAME,
        is_modeled=True,
    ),
    _declare_section_output_without_bounds(
        "tokens_owned", "Million tokens, owned", "USD/Mtoken", "cost"
    ),
    _declare_section_output_without_bounds("switches", "Switches", "", "fabric"),
    _declare_section_output_without_bounds("racks", "Racks", "", "power-cooling"),
    _declare_section_output_without_bounds("site_power", "Power of the site", "W", "power-cooling"),
)
_STEPS = StepBuilder(OUTPUTS, "batching-and-latency")
_MEMORY_NOTE = (
    "Memory holds the requests that a replica answers at once, each with the tokens that it has "
    "on average while it is answered."
)


def estimate(inputs: DeploymentInputs) -> Estimate:
    result = compute_deployment(inputs)
    capacity_changes = _capacity_section(result).estimate.changes
    capacity_inputs = _resolved_capacity_inputs(result)
    width = capacity_inputs.tensor_parallel * capacity_inputs.attention_parallel
    shared = {"prefill_gpus", "expert_parallel", "max_sequences"}
    if not result.relaxed_target_by_input:  # Of the targets that were typed.
        shared.add("weights")
    return Estimate(
        name="deployment",
        verdict=_build_verdict(result),
        figures=read_figures(OUTPUTS, result),
        steps=(_total_gpus_step(result),),
        notes=(
            NOTE,
            _MEMORY_NOTE,
            *(
                no_split_meets_targets_notes(inputs, width)
                if result.relaxed_target_by_input
                else ()
            ),
            *split_chosen_notes(result.inputs, capacity_inputs),
            *requests_beyond_max_context_note(
                find_model(result.inputs.model),
                build_request_pattern(capacity_inputs),
            ),
            *result.omission_notes,
            *rental_price_source_notes(result.gpu, inputs.usd_per_gpu_hour),
        ),
        changes=(
            *_combined_relaxed_target_change(result),
            *(change for change in capacity_changes if change.field in shared),
        ),
        sections=result.sections,
    )


def _build_verdict(result: DeploymentResult) -> Verdict:
    latency_verdict = _capacity_section(result).estimate.verdict
    is_expected = result.relaxed_target_by_input and latency_verdict.lead != LONGER_CONTEXT_LEAD
    objections = result.summarize_worst_sections("Latency" if is_expected else "")
    if result.gpus is None:
        return Verdict("no", "No number of GPUs serves it.", objections.headings_and_leads)
    verb = "answers" if result.gpus == 1 else "answer"
    asking = "users" if result.inputs.requests_per_second is None else "requests"
    spare = result.inputs.spare
    kept = f", {format_count(spare, 'spare replica')} included," if spare else ""
    parts = [f"{format_number(result.gpus)} {result.gpu.name}{kept} {verb} all {asking}"]
    cost, power = (
        result.find_figure(_CAPACITY_ESTIMATE_NAME, "cost_per_month"),
        result.find_figure("power-cooling", "site_power"),
    )
    if cost is not None and cost.value is not None:
        monthly = round_estimate_to_three_digits(float(cost.value), cost.unit)
        parts.append(f"{format_value(monthly, cost.unit)} rented")
    if power is not None and power.value is not None:
        parts.append(f"{power.formatted_value} at the site")
    count = f"{format_number(result.gpus)} GPUs." if result.gpus > 1 else "One GPU."
    text = f"{', '.join(parts)}. "
    first_token = result.find_figure(_CAPACITY_ESTIMATE_NAME, "ttft_p95")
    if result.inputs.ttft_target is None and first_token is not None:
        text += f"95 of 100 requests get their first token within {first_token.formatted_value}. "
    if not result.relaxed_target_by_input:
        return Verdict(objections.status, count, f"{text}{objections.headings_and_leads}".strip())
    late = f"{count.removesuffix('.')}, later than the targets."
    text += f"{_describe_relaxed_targets(result)} {objections.headings_and_leads}"
    return Verdict("no", late, text.strip())


def _describe_relaxed_targets(result: DeploymentResult) -> str:
    changes = [
        f"{TARGET_LABELS[field]} within {format_typed_latency_target(value)}, not "
        f"{format_value(getattr(result.inputs, field), 's')}"
        for field, value in result.relaxed_target_by_input.items()
    ]
    return (
        "Even one request alone misses the targets on this hardware. It is sized for 1.5 times "
        f"what one request takes: {' and '.join(changes)}."
    )


def _combined_relaxed_target_change(result: DeploymentResult) -> tuple[VerdictChange, ...]:
    """Return the targets that counted as one change of those that were typed."""
    capacity = _resolved_capacity_inputs(result)
    refused = find_max_num_seqs_refusal_of_replica(
        place_replica_model(capacity), capacity.memory_utilization
    )
    changes = [
        VerdictChange(
            field,
            f"Target: {TARGET_LABELS[field].removeprefix('time ')}",
            format_value(getattr(result.inputs, field), "s"),
            format_typed_latency_target(value),
            "Met with this hardware.",
        )
        for field, value in result.relaxed_target_by_input.items()
    ]
    if not changes:
        return ()
    first, *others = changes
    also = tuple(InputChange(change.field, change.label, change.new_value) for change in others)
    return (add_max_num_seqs_change(dataclasses.replace(first, other_changes=also), refused),)


def _capacity_section(result: DeploymentResult) -> SubEstimate:
    return next(
        section for section in result.sections if section.estimate_name == _CAPACITY_ESTIMATE_NAME
    )


def _resolved_capacity_inputs(result: DeploymentResult) -> ServingCapacityInputs:
    """Return the inputs of serving-capacity with the split that was chosen where left open."""
    inputs: ServingCapacityInputs = _capacity_section(result).inputs
    return dataclasses.replace(inputs, **result.split)


def _total_gpus_step(result: DeploymentResult) -> FormulaStep:
    capacity = _resolved_capacity_inputs(result)
    spare = capacity.spare
    terms: tuple[Term, ...] = ()
    templates, total = [], 0
    for kind in _replica_kinds(capacity):
        replicas = result.find_figure(_CAPACITY_ESTIMATE_NAME, kind.count_figure_name)
        count = int(replicas.value or 0) if replicas else 0
        name = f"{kind.name_prefix}replica"
        templates.append(f"([{name}s] + [spare {name}s]) × [GPUs of a {name}]")
        terms += (count, spare, kind.gpus_per_replica)
        total += (count + spare) * kind.gpus_per_replica
    return _STEPS.build_step_from_template(
        "gpus", " + ".join(templates), terms, total, "little-1961"
    )


class ReplicaKind(NamedTuple):
    """A kind of replica: what its name begins with, the figure of its number, and its GPUs."""

    name_prefix: str
    count_figure_name: str
    gpus_per_replica: int


def _replica_kinds(inputs: ServingCapacityInputs) -> tuple[ReplicaKind, ...]:
    gpus = build_serving_setup(inputs).gpus
    if not inputs.prefill_gpus:
        return (ReplicaKind("", "replicas", gpus),)
    return (
        ReplicaKind("decode ", "replicas", gpus),
        ReplicaKind("prefill ", "prefill_replicas", inputs.prefill_gpus),
    )


ENTRY = EstimateSpec(
    name="deployment",
    title="Deployment, from memory to cost",
    summary="One service entered once: weights, memory, latency, network, power and cost.",
    group="End to end",
    inputs_type=DeploymentInputs,
    compute_estimate=estimate,
    outputs=OUTPUTS,
    most_important_outputs=("gpus", "ttft_p95", "cost_per_month"),
    main_inputs=("model", "gpu", "concurrent"),
    topic="batching-and-latency",
    is_search=True,
)
