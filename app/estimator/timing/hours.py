"""Accelerator-hours of a whole training run, with what is lost on the way."""

import dataclasses
import math

from app.estimator.hardware.accelerators import Accelerator
from app.estimator.hardware.networks import fabric_of
from app.estimator.models.architecture import Architecture
from app.estimator.timing.room import memory_per_gpu
from app.estimator.timing.step import step_time
from app.estimator.timing.training_plan import SOFTWARE, TrainingPlan

# Share of booked time that is no progress: restarts, checkpoints, evaluation, and
# steps slower than in a benchmark. The middle of what published totals carry over
# their benchmark rates (3 to 15 % for restarts alone).
LOST = 0.16

# GPUs of the usual cluster that a run of this size is planned on, and its batch.
_CLUSTER = 1024
_TOKENS_PER_STEP = 4_000_000
# Tokens of a micro-batch: shorter sequences go through together, since products of
# fewer rows leave much of a GPU idle.
_TOKENS_AT_ONCE = 8192
_DEEPEST = 64  # stages of a pipeline


USUAL = "usual"


def usual_plans(
    model: Architecture, gpu: Accelerator, number_format: str, software: str
) -> tuple[TrainingPlan, ...]:
    """Layouts that runs of this size commonly have, one per tensor parallelism.

    Each has the fewest pipeline stages with which it fits in memory, with as little
    computed again as that takes. Dense models run as in compiled PyTorch, mixtures
    of experts as in the tuned software that they are trained with.

    Where:
        model: what is trained.
        gpu: the accelerator.
        number_format: of the products.
        software: its id, or `USUAL` for what models of this kind run in.
    """
    widths = (t for t in (1, 2, 4, 8) if not model.heads or model.heads % t == 0)
    if software == USUAL:
        software = "tuned" if model.is_routed else "compiled"
    plans = [
        _shallowest(model, gpu, _usual(model, number_format, software, tensor)) for tensor in widths
    ]
    fitting = [plan for plan, fits in plans if fits]
    return tuple(fitting or (plan for plan, _ in plans))


def _shallowest(
    model: Architecture, gpu: Accelerator, flat: TrainingPlan
) -> tuple[TrainingPlan, bool]:
    """The plan with the fewest stages that fits, or the deepest of all.

    `flat` is the plan without a pipeline.
    """
    pipeline = 1
    while True:
        plan = _in_stages(model, flat, pipeline)
        if memory_per_gpu(model, plan) <= gpu.capacity:
            return plan, True
        plan = dataclasses.replace(plan, recompute="full")
        if memory_per_gpu(model, plan) <= gpu.capacity:
            return plan, True
        if pipeline == _DEEPEST:
            return plan, False
        pipeline *= 2


def _usual(model: Architecture, number_format: str, software: str, tensor: int) -> TrainingPlan:
    """What all usual plans of one tensor parallelism have in common."""
    sequence = min(model.max_context or 4096, 8192)
    return TrainingPlan(
        tensor=tensor,
        sequence=sequence,
        micro_batch=max(1, _TOKENS_AT_ONCE // sequence),
        number_format=number_format,
        recompute="selective",
        software=SOFTWARE[software],
    )


def _in_stages(model: Architecture, flat: TrainingPlan, pipeline: int) -> TrainingPlan:
    """The plan on the usual cluster with so many stages of a pipeline."""
    data = max(1, _CLUSTER // (flat.tensor * pipeline))
    at_once = flat.micro_batch
    batches = max(1, round(_TOKENS_PER_STEP / flat.sequence / data / at_once))
    return dataclasses.replace(
        flat,
        pipeline=pipeline,
        data=data,
        expert=min(_experts(model, _CLUSTER), data),
        pieces=2 if pipeline > 1 else 1,
        micro_batches=max(batches, 2 * pipeline if pipeline > 1 else 1),
    )


def _experts(model: Architecture, data: int) -> int:
    if not model.is_routed:
        return 1
    most: int = math.gcd(model.experts, 64)
    return max(1, min(most, data))


def hours_per_token(
    model: Architecture, gpu: Accelerator, number_format: str, software: str
) -> float:
    """Accelerator-hours to train on a token with the best usual layout [h].

    1 / rate per GPU / 3600, in a run that loses nothing.

    Where:
        model: what is trained.
        gpu: the accelerator.
        number_format: of the products.
        software: its id, or `USUAL` for what models of this kind run in.

    >>> from app.estimator.models.lookup import find_model
    >>> from app.estimator.hardware.accelerators import find_accelerator
    >>> a100 = find_accelerator("a100-sxm4-80")
    >>> each = hours_per_token(find_model("llama-2-7b"), a100, "bf16", USUAL)
    >>> 1.4e5 < 2e12 * each / (1 - LOST) < 2.3e5
    True
    """
    fabric = fabric_of(gpu)
    rate = max(
        plan.tokens / step_time(model, gpu, fabric, plan).total / plan.gpus
        for plan in usual_plans(model, gpu, number_format, software)
    )
    return 1 / rate / 3600
