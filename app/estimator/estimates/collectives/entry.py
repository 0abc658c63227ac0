"""The estimate `collectives`: time and bytes of a collective, and what limits it."""

from app.estimator.estimate import Estimate
from app.estimator.estimates.collectives.asked import CollectivesInputs
from app.estimator.estimates.collectives.compute import links_of, measure
from app.estimator.estimates.collectives.words import OUTPUTS, answer
from app.estimator.hardware.accelerators import find_accelerator
from app.estimator.models.lookup import find_model
from app.estimator.registry import EstimateSpec


def estimate(asked: CollectivesInputs) -> Estimate:
    """Time the collective, and say which links decide."""
    gpu = find_accelerator(asked.gpu)
    fabric = links_of(asked, gpu)
    measured = measure(asked, fabric, asked.message)
    model = find_model(asked.model)
    return answer(asked, gpu, fabric, measured, model)


ENTRY = EstimateSpec(
    name="collectives",
    title="Collectives",
    summary="How long GPUs take to exchange data, and which links decide it.",
    group="Network",
    inputs=CollectivesInputs,
    answer=estimate,
    outputs=OUTPUTS,
    first=("time", "bus_bandwidth", "link_share"),
    topic="interconnects",
)
