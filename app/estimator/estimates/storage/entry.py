"""The estimate `storage`: data, checkpoints, and how often to save."""

from app.estimator.estimate import Estimate
from app.estimator.estimates.storage.asked import Storage
from app.estimator.estimates.storage.compute import find
from app.estimator.estimates.storage.words import OUTPUTS, answer
from app.estimator.registry import Entry


def estimate(asked: Storage) -> Estimate:
    """Size data and checkpoints, and find the interval that loses least."""
    return answer(asked, find(asked))


ENTRY = Entry(
    name="storage",
    title="Storage and checkpoints",
    summary="Data and checkpoint sizes, rates that keep GPUs fed, how often to save.",
    group="Cluster",
    inputs=Storage,
    answer=estimate,
    outputs=OUTPUTS,
    first=("interval", "lost", "checkpoint"),
    topic="cluster-components",
)
