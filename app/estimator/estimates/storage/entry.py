"""The estimate `storage`: data, checkpoints, and how often to save."""

from app.estimator.estimate import Estimate
from app.estimator.estimates.storage.asked import StorageInputs
from app.estimator.estimates.storage.compute import find
from app.estimator.estimates.storage.words import OUTPUTS, answer
from app.estimator.registry import EstimateSpec


def estimate(asked: StorageInputs) -> Estimate:
    """Size data and checkpoints, and find the interval that loses least."""
    return answer(asked, find(asked))


ENTRY = EstimateSpec(
    name="storage",
    title="Storage and checkpoints",
    summary="Data and checkpoint sizes, rates that keep GPUs fed, how often to save.",
    group="Cluster",
    inputs=StorageInputs,
    answer=estimate,
    outputs=OUTPUTS,
    first=("interval", "lost", "checkpoint"),
    topic="cluster-components",
)
