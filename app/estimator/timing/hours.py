"""Accelerator-hours of a whole training run, with what is lost on the way."""

import math

from app.estimator.hardware.accelerators import Accelerator
from app.estimator.hardware.networks import fabric_of
from app.estimator.models.architecture import Architecture
from app.estimator.timing.plan import SOFTWARE, Plan
from app.estimator.timing.step import step_time

# Share of booked time that a run uses well: restarts, checkpoints, evaluation, and
# steps slower than in a benchmark. The middle of what published totals carry over
# their benchmark rates (3 to 15 % for restarts alone).
USEFUL = 0.84

# GPUs of the usual cluster that a run of this size is planned on, and its batch.
_CLUSTER = 1024
_TOKENS_PER_STEP = 4_000_000
_STATES = 18.0  # bytes per parameter while training, before sharding
_SPARE = 0.6  # of the memory for states; the rest holds activations


def usual_plans(
    model: Architecture, gpu: Accelerator, number_format: str
) -> tuple[Plan, ...]:
    """Layouts that runs of this size commonly have, one per tensor parallelism.

    Pipeline parallelism as deep as weights, gradients and a share of the optimizer
    need.

    Where:
        model: what is trained.
        gpu: the accelerator.
        number_format: of the products.
    """
    room = gpu.capacity * _SPARE
    sequence = min(model.max_context or 4096, 8192)
    expert = _experts(model, _CLUSTER)
    needed = _states(model, expert, _CLUSTER) / room
    plans = []
    for tensor in (1, 2, 4, 8):
        if model.heads and model.heads % tensor:
            continue
        pipeline = 1
        while pipeline < 64 and tensor * pipeline < needed:
            pipeline *= 2
        data = max(1, _CLUSTER // (tensor * pipeline))
        batches = max(2 * pipeline, round(_TOKENS_PER_STEP / sequence / data))
        plans.append(
            Plan(
                tensor=tensor,
                pipeline=pipeline,
                data=data,
                expert=min(expert, data),
                pieces=2 if pipeline > 1 else 1,
                sequence=sequence,
                micro_batches=batches,
                number_format=number_format,
                recompute="selective",
                software=SOFTWARE["tuned" if model.is_routed else "megatron"],
            )
        )
    return tuple(plans)


def _states(model: Architecture, expert: int, gpus: int) -> float:
    """Bytes of states on one GPU before tensor and pipeline parallelism."""
    shared = model.parameters - model.routed_parameters
    routed = model.routed_parameters / expert
    sharded = (_STATES - 6) / max(1, gpus // 64)
    return (shared + routed) * (6 + sharded)


def _experts(model: Architecture, data: int) -> int:
    if not model.is_routed:
        return 1
    most: int = math.gcd(model.experts, 64)
    return max(1, min(most, data))


def gpu_hours(
    model: Architecture,
    gpu: Accelerator,
    tokens: float,
    number_format: str = "bf16",
    useful: float = USEFUL,
) -> float:
    """Accelerator-hours to train on `tokens` with the best usual layout [h].

    tokens / (rate per GPU · useful share) / 3600.

    Where:
        model: what is trained.
        gpu: the accelerator.
        tokens: tokens of the run [token].
        number_format: of the products.
        useful: share of booked time that is progress [1].

    >>> from app.estimator.models.lookup import find_model
    >>> from app.estimator.hardware.accelerators import find_accelerator
    >>> a100 = find_accelerator("a100-sxm4-80")
    >>> 1.4e5 < gpu_hours(find_model("llama-2-7b"), a100, 2e12) < 2.3e5
    True
    """
    fabric = fabric_of(gpu)
    rate = max(
        plan.tokens / step_time(model, gpu, fabric, plan).total / plan.gpus
        for plan in usual_plans(model, gpu, number_format)
    )
    return tokens / (rate * useful) / 3600
