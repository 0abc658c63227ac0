"""`deployment`: a whole service, composed of sections from memory to cost."""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from app.estimator import common_inputs
from app.estimator.common_inputs import COST, NETWORK
from app.estimator.estimates.composition import (
    LEFT_OUT,
    NOTE,
    ComposedResult,
    SectionComposer,
    add_cost_section,
    add_network_section,
    add_power_section,
    declare_section_output,
    find_reason_for_no_cluster,
    find_typed_or_first_system,
    system_input,
)
from app.estimator.estimates.cost import CostInputs
from app.estimator.estimates.fabric import FabricInputs
from app.estimator.estimates.inference_memory import DATA_PARALLEL, DIVIDED, InferenceMemoryInputs
from app.estimator.estimates.power_cooling import PowerCoolingInputs
from app.estimator.estimates.serving_capacity import (
    ServingCapacityInputs,
    build_request_pattern,
    build_serving_setup,
    fill_in_formats_and_gpus,
    place_replica_model,
)
from app.estimator.estimates.serving_capacity_report import (
    no_split_meets_targets_notes,
    requests_beyond_max_context_note,
    split_chosen_notes,
)
from app.estimator.formula_steps import StepBuilder, Term
from app.estimator.hardware.catalog import Accelerator, find_accelerator, find_system
from app.estimator.hardware.prices import rental_price_source_notes
from app.estimator.inputs import reuse_input
from app.estimator.memory_verdict import LONGER_CONTEXT_LEAD
from app.estimator.models.lookup import find_model
from app.estimator.models.weight_formats import replace_published_or_fp8_format
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
from app.estimator.serving.replica import relaxed_target_seconds
from app.estimator.serving.replica_memory import (
    find_engine_id_with_memory_data,
    find_max_num_seqs_refusal_of_replica,
    requests_in_memory_per_group,
)
from app.estimator.units import (
    NBSP,
    format_count,
    format_number,
    format_value,
    parse_quantity,
    round_estimate_to_three_digits,
)
from app.estimator.verdict_changes import add_max_num_seqs_change


def _default_gpus_per_replica(inputs: Any) -> int:
    composer = SectionComposer(inputs)
    split = _resolve_split(composer, _list_capacity_values(inputs))
    gpus: int = split["tensor_parallel"] * split["attention_parallel"] // inputs.attention_parallel
    return gpus


@dataclasses.dataclass(frozen=True, slots=True)
class DeploymentInputs:
    model: str = common_inputs.model_input()
    gpu: str = common_inputs.counted_gpu_input(count_field="tensor_parallel")
    concurrent: int = reuse_input(ServingCapacityInputs, "concurrent")
    requests_per_second: float | None = reuse_input(ServingCapacityInputs, "requests_per_second")
    tensor_parallel: int | None = reuse_input(
        ServingCapacityInputs, "tensor_parallel", compute_usual_value=_default_gpus_per_replica
    )
    weights: str = reuse_input(ServingCapacityInputs, "weights")
    cache: str = reuse_input(ServingCapacityInputs, "cache")
    prompt_tokens: int = reuse_input(ServingCapacityInputs, "prompt_tokens")
    output_tokens: int = reuse_input(ServingCapacityInputs, "output_tokens")
    peak: float = reuse_input(ServingCapacityInputs, "peak")
    prompt_variation: float = reuse_input(ServingCapacityInputs, "prompt_variation")
    answer_variation: float = reuse_input(ServingCapacityInputs, "answer_variation")
    ttft_target: float | None = reuse_input(ServingCapacityInputs, "ttft_target")
    tpot_target: float | None = reuse_input(ServingCapacityInputs, "tpot_target")
    spare: int = reuse_input(ServingCapacityInputs, "spare")
    memory_utilization: float = reuse_input(InferenceMemoryInputs, "memory_utilization")
    max_sequences: int | None = reuse_input(InferenceMemoryInputs, "max_sequences")
    attention_parallel: int = reuse_input(ServingCapacityInputs, "attention_parallel")
    expert_parallel: int = reuse_input(ServingCapacityInputs, "expert_parallel")
    pipeline_parallel: int = reuse_input(ServingCapacityInputs, "pipeline_parallel")
    prefill_gpus: int | None = reuse_input(ServingCapacityInputs, "prefill_gpus")
    decode_gpus: int | None = reuse_input(ServingCapacityInputs, "decode_gpus")
    engine: str = reuse_input(ServingCapacityInputs, "engine")
    cached_share: float = reuse_input(ServingCapacityInputs, "cached_share")
    draft_tokens: int = reuse_input(ServingCapacityInputs, "draft_tokens")
    acceptance: float | None = reuse_input(ServingCapacityInputs, "acceptance")
    draft_cost: float = reuse_input(ServingCapacityInputs, "draft_cost")
    system: str | None = system_input()
    oversubscription: float = reuse_input(FabricInputs, "oversubscription", group=NETWORK.heading)
    rack_limit: float | None = reuse_input(
        PowerCoolingInputs, "rack_limit", group="Power", compute_usual_value=None
    )
    site_limit: float | None = reuse_input(PowerCoolingInputs, "site_limit", group="Power")
    pue: float = reuse_input(PowerCoolingInputs, "pue", group="Power")
    usd_per_gpu_hour: float | None = common_inputs.price_input()
    utilisation: float = reuse_input(CostInputs, "utilisation", group=COST.heading)
    price: float = reuse_input(CostInputs, "price", group=COST.heading)
    electricity: float = reuse_input(CostInputs, "electricity", group=COST.heading)


@dataclasses.dataclass(frozen=True, slots=True)
class DeploymentResult(ComposedResult):
    """A service: its GPUs and systems, and what each calculator says of it.

    `gpus` is None if no number of them serves. `relaxed_target_by_input` are those that counted instead of
    the ones that even one request misses. `split` says how the GPUs of a replica share the model.
    """

    inputs: DeploymentInputs
    gpu: Accelerator
    gpus: int | None
    nodes: int
    relaxed_target_by_input: Mapping[str, str]
    split: Mapping[str, Any]


def compute_deployment(inputs: DeploymentInputs) -> DeploymentResult:
    """Take a service through weights, memory, latency, network, power and cost."""
    gpu = find_accelerator(inputs.gpu)
    system = find_typed_or_first_system(gpu, inputs.system)
    run = SectionComposer(inputs)
    values = _list_capacity_values(inputs)
    split = _resolve_split(run, values)
    width = split["tensor_parallel"]
    capacity = run.compute_section("Latency", "serving-capacity", values)
    relaxed = _relaxed_target_by_input(capacity)
    if relaxed:
        capacity = run.compute_section(
            "Latency", "serving-capacity", {**values, **split, **relaxed}
        )
        capacity = dataclasses.replace(capacity, replaced_targets_text=_describe_targets(relaxed))
    estimate = capacity.estimate
    weights = {
        "weights": replace_published_or_fp8_format(find_model(inputs.model), inputs.weights),
        "tensor_parallel": 1 if inputs.decode_gpus else width,
    }
    section = run.compute_section("Weights", "weights", weights)
    if inputs.decode_gpus or split["attention_parallel"] > 1:
        section = _without_weights_of_one_gpu(section)
    run.sections.append(section)
    if split["attention_parallel"] > 1 and width > 1:
        run.omission_reason_by_section["Memory"] = (
            "inference-memory divides attention over all GPUs of a replica or over none."
        )
    else:
        run.add_section(
            "Memory", "inference-memory", _memory_inputs_of_replica_at_load(inputs, split, capacity)
        )
    run.sections.append(capacity)
    gpus = estimate["gpus"].value
    if not isinstance(gpus, int):
        return DeploymentResult(tuple(run.sections), {}, inputs, gpu, None, 0, relaxed, split)
    nodes = int(estimate["nodes"].value or 0) if system else 0
    reason = find_reason_for_no_cluster(gpu, system, gpus)
    if system is None or reason:
        run.omission_reason_by_section |= dict.fromkeys(("Network", "Power", "Cost"), reason)
    else:
        network = add_network_section(run, system, nodes)
        add_power_section(run, system, nodes, network)
        rate = float(estimate["throughput"].value or 0) / gpus
        add_cost_section(run, system, gpus, {"token_rate": rate})
    return DeploymentResult(
        tuple(run.sections),
        run.omission_reason_by_section,
        inputs,
        gpu,
        gpus,
        nodes,
        relaxed,
        split,
    )


def _without_weights_of_one_gpu(section: SubEstimate) -> SubEstimate:
    """Return the section of weights, which knows only tensor parallelism, without one GPU's part."""
    note = "Attention and experts are divided differently here; Memory has each GPU's part."
    label = section.estimate["per_gpu"].label
    figures = tuple(
        dataclasses.replace(figure, value=None, note=note, applies=False)
        if figure.name == "per_gpu"
        else figure
        for figure in section.estimate.figures
    )
    steps = tuple(step for step in section.estimate.steps if step.label != label)
    return dataclasses.replace(
        section, estimate=dataclasses.replace(section.estimate, figures=figures, steps=steps)
    )


def _relaxed_target_by_input(capacity: SubEstimate) -> dict[str, str]:
    """Return targets instead of those that even one request misses: 1.5 times what it takes.

    At just what one request takes, each replica would answer one at a time.
    """
    if capacity.estimate["gpus"].value is not None:
        return {}
    return {
        change.field: f"{relaxed_target_seconds(parse_quantity(change.new_value.replace(NBSP, ' '), 's')):g} s"
        for change in capacity.estimate.changes
        if change.field.endswith("_target")
    }


TARGET_LABELS = {"ttft_target": "first token", "tpot_target": "time per token"}


def format_typed_latency_target(value: str) -> str:
    """Format a target as it is typed in seconds.

    >>> format_typed_latency_target("0.062 s").replace(NBSP, " ")
    '62 ms'
    """
    return format_value(parse_quantity(value, "s"), "s")


def _describe_targets(targets: Mapping[str, str]) -> str:
    """Return targets as a list in words, such as “first token within 3.2 s”."""
    return " and ".join(
        f"{TARGET_LABELS[field]} within {format_typed_latency_target(value)}"
        for field, value in targets.items()
    )


def _list_capacity_values(inputs: DeploymentInputs) -> dict[str, Any]:
    """Return the inputs of serving-capacity that the deployment has under another name or not."""
    values: dict[str, Any] = {"cost_per_gpu_hour": inputs.usd_per_gpu_hour}
    if inputs.system:
        values["gpus_per_node"] = find_system(inputs.system).gpus
    return values


def _resolve_split(composer: SectionComposer, values: Mapping[str, Any]) -> dict[str, int]:
    """Return how the GPUs of a replica share the model, as chosen where it is left open."""
    with composer.map_section_errors_to_own_inputs():
        inputs = fill_in_formats_and_gpus(
            composer.merge_section_inputs_with_own("serving-capacity", values)
        )
    split = ("tensor_parallel", "attention_parallel", "expert_parallel")
    return {name: getattr(inputs, name) for name in split}


def _memory_inputs_of_replica_at_load(
    inputs: DeploymentInputs, split: Mapping[str, Any], capacity: SubEstimate
) -> dict[str, Any]:
    """Return the inputs of inference-memory for one replica at its load.

    Requests are in it at once, and tokens of each in its cache, as in serving-capacity: those
    that memory has no room for wait outside, and a request has its mean context. Where groups of
    GPUs have requests of their own, attention is data parallel.
    """
    gpus, attention = split["tensor_parallel"], DIVIDED
    if inputs.decode_gpus:
        gpus = inputs.decode_gpus
        attention = DATA_PARALLEL if find_model(inputs.model).is_routed else DIVIDED
    elif split["attention_parallel"] > 1:
        gpus, attention = split["attention_parallel"], DATA_PARALLEL
    groups = gpus if attention == DATA_PARALLEL else 1
    at_once, most = (capacity.estimate[name].value for name in ("concurrent", "max_concurrent"))
    each = requests_in_memory_per_group(float(at_once or 1), float(most or 1), groups)
    return {
        "weights": replace_published_or_fp8_format(find_model(inputs.model), inputs.weights),
        "tensor_parallel": gpus,
        "attention": attention,
        "engine": find_engine_id_with_memory_data(inputs.engine),
        "context": int(build_request_pattern(capacity.inputs).mean_context_of_running_sequence),
        "concurrent": each * groups,
        "block": 1,
    }


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
