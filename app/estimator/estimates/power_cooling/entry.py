"""The estimate `power-cooling`: power, current, heat and racks of a site."""

from app.estimator.estimate import Estimate
from app.estimator.estimates.power_cooling.asked import TOPIC, PowerCoolingInputs
from app.estimator.estimates.power_cooling.compute import find
from app.estimator.estimates.power_cooling.words import OUTPUTS, answer
from app.estimator.registry import EstimateSpec


def estimate(asked: PowerCoolingInputs) -> Estimate:
    """Size racks, feeds, cooling and energy of a number of systems."""
    return answer(asked, find(asked))


ENTRY = EstimateSpec(
    name="power-cooling",
    title="Power and cooling",
    summary="Racks, current, heat and air of a number of systems; energy and carbon.",
    group="Cluster",
    inputs=PowerCoolingInputs,
    answer=estimate,
    outputs=OUTPUTS,
    first=("racks", "machines_power", "site_power"),
    topic=TOPIC,
)
