"""The estimate `serving-capacity`: from traffic and targets to GPUs and nodes."""

from app.estimator.estimate import Estimate
from app.estimator.estimates.latency.compute import check
from app.estimator.estimates.serving_capacity.asked import ServingCapacityInputs
from app.estimator.estimates.serving_capacity.compute import (
    check_experts,
    profile_for,
    size,
)
from app.estimator.estimates.serving_capacity.words import OUTPUTS, answer
from app.estimator.hardware.accelerators import find_accelerator
from app.estimator.models.lookup import find_model
from app.estimator.registry import EstimateSpec


def estimate(asked: ServingCapacityInputs) -> Estimate:
    """Find the replicas that meet the targets, and what they do."""
    model, gpu = find_model(asked.model), find_accelerator(asked.gpu)
    check(model, gpu, asked.weights, asked.tensor_parallel)
    check_experts(model, asked)
    profile = profile_for(asked)
    return answer(asked, profile, size(asked, profile))


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
