"""`deployment`: a whole service, composed of sections from memory to cost; and its inputs."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from app.estimator import common_inputs
from app.estimator.common_inputs import COST, NETWORK
from app.estimator.estimates.composition import (
    ComposedResult,
    SectionComposer,
    add_cost_section,
    add_network_section,
    add_power_section,
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
    fill_in_formats_and_gpus,
)
from app.estimator.hardware.catalog import Accelerator, find_accelerator, find_system
from app.estimator.inputs import reuse_input
from app.estimator.models.lookup import find_model
from app.estimator.models.weight_formats import replace_published_or_fp8_format
from app.estimator.result import SubEstimate
from app.estimator.serving.replica import relaxed_target_seconds
from app.estimator.serving.replica_memory import (
    find_engine_id_with_memory_data,
    requests_in_memory_per_group,
)
from app.estimator.units import NBSP, format_value, parse_quantity


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
