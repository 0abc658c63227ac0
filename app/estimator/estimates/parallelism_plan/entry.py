"""The estimate `parallelism-plan`: the best layouts of a model on a cluster."""

from app.estimator.estimate import Estimate
from app.estimator.estimates.parallelism_plan.asked import ParallelismPlanInputs
from app.estimator.estimates.parallelism_plan.compute import check, find_plans
from app.estimator.estimates.parallelism_plan.words import OUTPUTS, answer
from app.estimator.hardware.accelerators import find_accelerator
from app.estimator.models.lookup import find_model
from app.estimator.registry import EstimateSpec


def estimate(asked: ParallelismPlanInputs) -> Estimate:
    """Search all layouts, and put the best into words."""
    model, gpu = find_model(asked.model), find_accelerator(asked.gpu)
    check(asked, gpu)
    return answer(asked, model, gpu, find_plans(asked, model, gpu))


ENTRY = EstimateSpec(
    name="parallelism-plan",
    title="Parallelism plan",
    summary="The best layouts of a model on a cluster, with the reason for each.",
    group="Training",
    inputs=ParallelismPlanInputs,
    answer=estimate,
    outputs=OUTPUTS,
    first=("time", "tokens_per_second_per_gpu", "mfu"),
    topic="parallelism",
    is_search=True,
)
