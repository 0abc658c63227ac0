"""The estimate `latency`: time to the first token and per token, and what bounds it."""

from app.estimator.estimate import Estimate
from app.estimator.estimates.latency.asked import LatencyInputs
from app.estimator.estimates.latency.compute import check, timed
from app.estimator.estimates.latency.words import OUTPUTS, answer
from app.estimator.hardware.accelerators import find_accelerator
from app.estimator.hardware.networks import fabric_of
from app.estimator.models.lookup import find_model
from app.estimator.registry import EstimateSpec
from app.estimator.serving.engine import ServingSetup
from app.estimator.serving.step import place_model


def estimate(asked: LatencyInputs) -> Estimate:
    """Time prompt and answer, and say what bounds each."""
    model, gpu = find_model(asked.model), find_accelerator(asked.gpu)
    tensor = 1 if asked.beyond_heads else asked.tensor_parallel
    check(model, gpu, asked.weights, tensor)
    fabric = fabric_of(gpu, asked.network_rate, domain=asked.domain or 0)
    serving = ServingSetup(
        weights=asked.weights,
        cache=asked.cache,
        tensor=asked.tensor_parallel,
        expert_tensor=asked.tensor_parallel,
        software=asked.engine,
    )
    placed = place_model(model, gpu, fabric, serving)
    return answer(asked, placed, timed(asked, placed))


ENTRY = EstimateSpec(
    name="latency",
    title="Latency",
    summary="Time to the first token and per token, and what each is bound by.",
    group="Serving",
    inputs=LatencyInputs,
    answer=estimate,
    outputs=OUTPUTS,
    first=("ttft", "tpot", "throughput"),
    topic="batching-and-latency",
)
