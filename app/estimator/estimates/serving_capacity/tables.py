"""The tables of the estimate `serving-capacity`: one replica by load, and simulated."""

from app.estimator.estimate import ResultTable
from app.estimator.estimates.serving_capacity.asked import ServingCapacityInputs
from app.estimator.serving.capacity import CapacityResult
from app.estimator.serving.profile import (
    OperatingPoint,
    ReplicaProfile,
    best_batch,
    operating_point,
)
from app.estimator.serving.simulation import SimulationResult, quantile
from app.estimator.units import format_number

SHARES = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
"""Names of percentiles, and the shares of the requests that they mean."""


def share_of(asked: ServingCapacityInputs) -> float:
    """The share of the requests for which the targets must hold [1]."""
    return next(share for name, share in SHARES if name == asked.percentile)


def tables_of(
    asked: ServingCapacityInputs, profile: ReplicaProfile, found: CapacityResult
) -> tuple[ResultTable, ...]:
    """A replica by load, and beside a simulation where one was asked for."""
    if not found.memory:
        return ()
    share, rows = share_of(asked), []
    batch = 1.0
    top = best_batch(profile)
    while batch < 2 * top:
        settled = operating_point(profile, min(batch, top), (share,))
        rows.append(
            (
                format_number(round(settled.batch)),
                (settled.rate, "request/s"),
                (settled.ttft[share], "s"),
                (settled.tpot[share], "s"),
            )
        )
        batch *= 2
    columns = ("Requests at once", "Rate", "First token", "Per token")
    tables = [ResultTable("One replica by load", columns, tuple(rows))]
    if found.simulated is not None and found.settled is not None:
        tables.append(_simulation(found.simulated, found.settled))
    return tuple(tables)


def _simulation(outcome: SimulationResult, settled: OperatingPoint) -> ResultTable:
    rows = []
    for name, share in SHARES:
        first, pace = quantile(outcome.ttft, share), quantile(outcome.tpot, share)
        rows.append(
            (
                name,
                (settled.ttft[share], "s"),
                (first or 0.0, "s"),
                (settled.tpot[share], "s"),
                (pace or 0.0, "s"),
            )
        )
    columns = (
        "Share",
        "First token, formula",
        "First token, simulated",
        "Per token, formula",
        "Per token, simulated",
    )
    return ResultTable("Formula and simulation", columns, tuple(rows))
