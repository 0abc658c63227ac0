"""The estimate `power-cooling`: power, current, heat and racks of a site."""

from app.estimator.estimate import Estimate
from app.estimator.estimates.power_cooling.asked import TOPIC, PowerCooling
from app.estimator.estimates.power_cooling.compute import find
from app.estimator.estimates.power_cooling.words import OUTPUTS, answer
from app.estimator.registry import Entry


def estimate(asked: PowerCooling) -> Estimate:
    """Size racks, feeds, cooling and energy of a number of systems."""
    return answer(asked, find(asked))


ENTRY = Entry(
    name="power-cooling",
    title="Power and cooling",
    summary="Racks, current, heat and air of a number of systems; energy and carbon.",
    group="Cluster",
    inputs=PowerCooling,
    answer=estimate,
    outputs=OUTPUTS,
    first=("racks", "machines_power", "site_power"),
    topic=TOPIC,
)
