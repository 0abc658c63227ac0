"""The estimate `cost`: renting accelerators against owning them."""

from app.estimator.estimate import Estimate
from app.estimator.estimates.cost.asked import TOPIC, CostInputs
from app.estimator.estimates.cost.compute import find
from app.estimator.estimates.cost.words import OUTPUTS, answer
from app.estimator.registry import EstimateSpec


def estimate(asked: CostInputs) -> Estimate:
    """Weigh a year of renting against a year of owning."""
    return answer(asked, find(asked))


ENTRY = EstimateSpec(
    name="cost",
    title="Rent or buy",
    summary="Renting against owning, with the utilization at which both cost the same.",
    group="Cluster",
    inputs=CostInputs,
    answer=estimate,
    outputs=OUTPUTS,
    first=("owned_hour", "rented_hour", "break_even"),
    topic=TOPIC,
)
