"""The numbers of `parallelism-plan`."""

import dataclasses

from app.estimator.estimates.parallelism_plan.asked import ParallelismPlanInputs
from app.estimator.estimates.parallelism_plan.layouts import TrainingJob
from app.estimator.estimates.parallelism_plan.search import (
    STEPS,
    FewestGpus,
    LayoutCandidate,
    LayoutSearchResult,
    fewest,
    look,
)
from app.estimator.hardware.accelerators import Accelerator
from app.estimator.hardware.networks import Interconnect, fabric_of
from app.estimator.models.architecture import Architecture
from app.estimator.shared_inputs import input_error


@dataclasses.dataclass(frozen=True, slots=True)
class ParallelismPlanResult:
    """The layouts that were found, best first, and the smallest cluster.

    `count` of those looked at fit; `seen` of `legal` ones were looked at before the
    work became too much.
    """

    job: TrainingJob
    fabric: Interconnect
    ranked: tuple[LayoutCandidate, ...]
    fewest: FewestGpus
    count: int
    seen: int
    legal: int

    @property
    def first(self) -> LayoutCandidate | None:
        """The best layout."""
        return self.ranked[0] if self.ranked else None


# Clusters beside the asked one that are tried when money decides: half, a quarter.
_HALVINGS = 4


_MOST = 10  # layouts that are ranked


_MOST_OF_PARTS = 3


_STEPS_OF_FEWEST = 10_000  # see STEPS


def check(asked: ParallelismPlanInputs, gpu: Accelerator) -> None:
    """Refuse a card without the rates, memory or format that a search needs."""
    if gpu.peak("bf16") is None or gpu.memory_bandwidth is None or not gpu.capacity:
        message = f"Rates and memory of the {gpu.name} are not all known."
        raise input_error("gpu", asked.gpu, message)
    if gpu.peak(asked.number_format) is None:
        message = f"The {gpu.name} does not compute in {asked.number_format.upper()}."
        raise input_error("number_format", asked.number_format, message)


def job_of(asked: ParallelismPlanInputs) -> TrainingJob:
    """The job that the inputs describe."""
    usual = max(1, round(8e6 / asked.sequence))
    return TrainingJob(
        gpus=asked.gpus,
        sequence=asked.sequence,
        global_batch=asked.global_batch or _rounded(usual, asked.gpus),
        number_format=asked.number_format,
        software=asked.software,
        usable=asked.usable_memory,
    )


def _rounded(batch: int, gpus: int) -> int:
    """A batch that the whole cluster divides, or a power of two below it."""
    if batch >= gpus:
        return round(batch / gpus) * gpus
    power = 1
    while 2 * power <= batch:
        power *= 2
    return power


def find_plans(
    asked: ParallelismPlanInputs, model: Architecture, gpu: Accelerator
) -> ParallelismPlanResult:
    """The best layouts, the smallest cluster, and how many were tried."""
    fabric = fabric_of(gpu, asked.network_rate, asked.network, asked.domain or 0)
    job = job_of(asked)
    searches = _searches(asked, model, gpu, job, fabric)
    ranked = [c for found in searches for c in found.ranked]
    if asked.objective == "cost":
        ranked.sort(key=lambda c: c.plan.gpus / c.tokens_per_second)
    return ParallelismPlanResult(
        job=job,
        fabric=fabric,
        ranked=tuple(ranked[:10]),
        fewest=fewest(model, gpu, job, fabric, _STEPS_OF_FEWEST),
        count=searches[0].fitting,
        seen=sum(found.seen for found in searches),
        legal=sum(found.legal for found in searches),
    )


def _searches(
    asked: ParallelismPlanInputs,
    model: Architecture,
    gpu: Accelerator,
    job: TrainingJob,
    fabric: Interconnect,
) -> list[LayoutSearchResult]:
    """The search on the whole cluster, and behind it those on its parts.

    The smallest is searched first, and what it leaves of the work goes to the others.
    """
    halvings = _HALVINGS if asked.objective == "cost" else 0
    sizes = [n for n in range(halvings + 1) if job.gpus >> n]
    found: list[LayoutSearchResult] = []
    left = STEPS
    while sizes:
        steps = left // len(sizes)
        halving = sizes.pop()
        part = dataclasses.replace(job, gpus=job.gpus >> halving)
        most = _MOST_OF_PARTS if halving else _MOST
        found.insert(0, look(model, gpu, part, fabric, most, steps))
        left -= found[0].steps
    return found
