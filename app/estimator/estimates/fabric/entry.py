"""The estimate `fabric`: switches and cables of the networks of a cluster."""

from app.estimator.estimate import Estimate
from app.estimator.estimates.fabric.asked import FabricInputs
from app.estimator.estimates.fabric.compute import find
from app.estimator.estimates.fabric.words import OUTPUTS, answer
from app.estimator.registry import EstimateSpec


def estimate(asked: FabricInputs) -> Estimate:
    """Count switches, cables and transceivers of the four networks."""
    return answer(asked, find(asked))


ENTRY = EstimateSpec(
    name="fabric",
    title="Network fabric",
    summary="Switches, cables and transceivers that join a number of systems.",
    group="Cluster",
    inputs=FabricInputs,
    answer=estimate,
    outputs=OUTPUTS,
    first=("switches", "cables", "power"),
    topic="interconnects",
)
