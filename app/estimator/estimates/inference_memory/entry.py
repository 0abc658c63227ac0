"""The estimate `inference-memory`: what serving a model takes on each GPU."""

from app.estimator.estimate import Estimate
from app.estimator.estimates.inference_memory.asked import InferenceMemoryInputs
from app.estimator.estimates.inference_memory.compute import check, limits_of, load_of
from app.estimator.estimates.inference_memory.words import OUTPUTS, answer
from app.estimator.hardware.accelerators import find_accelerator
from app.estimator.models.lookup import find_model
from app.estimator.registry import EstimateSpec


def estimate(asked: InferenceMemoryInputs) -> Estimate:
    """Weigh weights, cache, activations and overhead against one GPU's memory."""
    model = find_model(asked.model)
    gpu = find_accelerator(asked.gpu)
    check(model, asked, gpu)
    load = load_of(model, asked, asked.tensor_parallel)
    limits = limits_of(model, asked, gpu, load)
    return answer(model, asked, gpu, load, limits)


ENTRY = EstimateSpec(
    name="inference-memory",
    title="Inference memory",
    summary="Whether a model fits for serving, and how far context and load can go.",
    group="Memory",
    inputs=InferenceMemoryInputs,
    answer=estimate,
    outputs=OUTPUTS,
    first=("per_gpu", "max_concurrent", "fewest_gpus"),
    topic="inference-memory",
)
