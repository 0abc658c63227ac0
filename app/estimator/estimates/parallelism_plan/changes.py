"""What would turn the verdict of `parallelism-plan`."""

from app.estimator.estimate import VerdictFlip
from app.estimator.estimates.parallelism_plan.asked import ParallelismPlanInputs
from app.estimator.estimates.parallelism_plan.compute import ParallelismPlanResult
from app.estimator.units import format_number


def changes(asked: ParallelismPlanInputs, found: ParallelismPlanResult) -> tuple[VerdictFlip, ...]:
    """The size of the cluster with which no layout fits any more."""
    fewest = found.fewest.gpus
    if found.first is None or fewest is None or not 2 <= fewest < asked.gpus:
        return ()
    now, then = format_number(asked.gpus), format_number(fewest // 2)
    return (VerdictFlip("gpus", "GPUs", now, then, "No layout fits any more."),)
