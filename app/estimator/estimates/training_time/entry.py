"""The estimate `training-time`: a step, a run, and what the run costs."""

import dataclasses

from app.estimator.estimate import Estimate
from app.estimator.estimates.training_time.asked import TrainingTimeInputs
from app.estimator.estimates.training_time.compute import (
    check,
    enough,
    faster,
    lighter,
    plan_of,
    run_of,
    timed,
)
from app.estimator.estimates.training_time.words import OUTPUTS, answer
from app.estimator.hardware.accelerators import find_accelerator
from app.estimator.models.lookup import find_model
from app.estimator.registry import EstimateSpec


def estimate(asked: TrainingTimeInputs) -> Estimate:
    """Time a step of the plan and carry it through the whole run."""
    model, gpu = find_model(asked.model), find_accelerator(asked.gpu)
    check(model, asked, gpu)
    plan = plan_of(asked)
    step = timed(model, gpu, asked, plan)
    run = run_of(model, gpu, asked, plan, step)
    if run.memory > gpu.capacity:
        run = dataclasses.replace(run, lighter=lighter(model, gpu, asked))
    elif asked.deadline is not None and run.seconds > asked.deadline:
        run = dataclasses.replace(run, enough=enough(model, gpu, asked))
    run = dataclasses.replace(run, faster=faster(model, gpu, asked, run))
    return answer(asked, model, gpu, run)


ENTRY = EstimateSpec(
    name="training-time",
    title="Training time",
    summary="How long a run takes, where each step goes, and what it costs.",
    group="Training",
    inputs=TrainingTimeInputs,
    answer=estimate,
    outputs=OUTPUTS,
    first=("time", "mfu", "gpu_hours"),
    topic="parallelism",
)
