"""The numbers of `serving-capacity`."""

import dataclasses
import math

from app.estimator.estimates.serving_capacity.asked import (
    MOST_REPLICAS,
    ServingCapacityInputs,
)
from app.estimator.hardware.accelerators import find_accelerator
from app.estimator.hardware.networks import fabric_of
from app.estimator.memory.sharding import tensor_parallel_choices
from app.estimator.models.architecture import Architecture
from app.estimator.models.lookup import find_model
from app.estimator.serving.capacity import CapacityResult
from app.estimator.serving.engine import ServingSetup
from app.estimator.serving.load import RequestShape, most_sequences
from app.estimator.serving.profile import (
    LatencyTargets,
    OperatingPoint,
    ReplicaProfile,
    Traffic,
    highest,
    operating_point,
    profile_of,
    settle_rate,
)
from app.estimator.serving.simulation import SimulationResult, simulate
from app.estimator.serving.step import place_model
from app.estimator.shared_inputs import input_error


def profile_for(asked: ServingCapacityInputs) -> ReplicaProfile:
    """The curves of one replica."""
    gpu = find_accelerator(asked.gpu)
    fabric = fabric_of(gpu, asked.network_rate, domain=asked.domain or 0)
    placed = place_model(find_model(asked.model), gpu, fabric, serving_of(asked))
    requests = RequestShape(asked.prompt_tokens, asked.output_tokens)
    traffic = Traffic(requests, asked.prompt_variation, asked.answer_variation)
    return profile_of(placed, traffic, asked.memory_utilization)


def serving_of(asked: ServingCapacityInputs) -> ServingSetup:
    """Formats and splits of one replica."""
    return ServingSetup(
        weights=asked.weights,
        cache=asked.cache,
        tensor=asked.tensor_parallel,
        replicas=asked.attention_parallel,
        expert=asked.expert_parallel,
        expert_tensor=asked.expert_tensor_parallel or asked.tensor_parallel,
        software=asked.engine,
        polling=asked.polling,
    )


def check_experts(model: Architecture, asked: ServingCapacityInputs) -> None:
    """Refuse experts that cannot be divided as asked."""
    parts = asked.expert_parallel
    if parts > 1 and not model.is_routed:
        message = f"{model.name} has no experts to divide; use 1."
        raise input_error("expert_parallel", parts, message)
    if parts > max(1, model.experts):
        message = f"{model.experts} experts cannot be divided into {parts} parts."
        raise input_error("expert_parallel", parts, message)


def targets_of(asked: ServingCapacityInputs) -> LatencyTargets:
    """The targets as numbers."""
    share = {"p50": 0.5, "p95": 0.95, "p99": 0.99}[asked.percentile]
    return LatencyTargets(share, asked.ttft_target, asked.tpot_target)


def size(asked: ServingCapacityInputs, profile: ReplicaProfile) -> CapacityResult:
    """Replicas, and how each of them settles."""
    targets = targets_of(asked)
    top = highest(profile, targets)
    replicas = asked.replicas or _fewest(asked, top)
    settled = settled_at(asked, profile, replicas or 1)
    return CapacityResult(
        replicas=replicas,
        settled=settled,
        top=top,
        met=bool(replicas) and settled is not None and targets.met(settled),
        memory=profile.most >= 1,
        simulated=_simulated(asked, profile, settled),
        alone=operating_point(profile, 1.0) if profile.most >= 1 and top is None else None,
        enough=_enough(asked, profile) if profile.most < 1 else None,
    )


def _enough(asked: ServingCapacityInputs, profile: ReplicaProfile) -> int | None:
    """The fewest GPUs per replica that hold the weights and one request."""
    model, gpu = profile.placed.model, profile.placed.gpu
    for tensor in tensor_parallel_choices(model):
        if tensor <= asked.tensor_parallel:
            continue
        serving = serving_of(dataclasses.replace(asked, tensor_parallel=tensor))
        wider = place_model(model, gpu, profile.placed.fabric, serving)
        context = profile.traffic.requests.mean_context
        if most_sequences(wider, context, asked.memory_utilization) >= 1:
            return tensor
    return None


def _fewest(asked: ServingCapacityInputs, top: OperatingPoint | None) -> int | None:
    """The fewest replicas that each stay within the highest load; None: no number."""
    if top is None:
        return None
    if asked.requests_per_second is not None:
        needed = asked.requests_per_second * asked.peak / top.rate
    else:
        needed = asked.concurrent * asked.peak / top.batch
    count = max(1, math.ceil(needed - 1e-9))
    return count if count <= MOST_REPLICAS else None


def settled_at(
    asked: ServingCapacityInputs, profile: ReplicaProfile, replicas: int
) -> OperatingPoint | None:
    """How one of `replicas` settles; None when it cannot keep up."""
    if profile.most < 1:
        return None
    if asked.requests_per_second is not None:
        return settle_rate(profile, asked.requests_per_second * asked.peak / replicas)
    batch = asked.concurrent * asked.peak / replicas
    return operating_point(profile, batch) if batch <= profile.most else None


def _simulated(
    asked: ServingCapacityInputs, profile: ReplicaProfile, settled: OperatingPoint | None
) -> SimulationResult | None:
    if not asked.simulate or settled is None:
        return None
    return simulate(profile, settled.rate, seed=asked.seed)
