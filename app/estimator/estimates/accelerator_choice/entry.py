"""The estimate `accelerator-choice`: which accelerators do a job, best first."""

from app.estimator.estimate import Estimate
from app.estimator.estimates.accelerator_choice.asked import TOPIC, AcceleratorChoiceInputs
from app.estimator.estimates.accelerator_choice.search import search
from app.estimator.estimates.accelerator_choice.words import OUTPUTS, answer
from app.estimator.registry import EstimateSpec


def estimate(asked: AcceleratorChoiceInputs) -> Estimate:
    """Rank the GPUs of the catalog for a job, with reasons for and against."""
    return answer(asked, search(asked))


ENTRY = EstimateSpec(
    name="accelerator-choice",
    title="Accelerator choice",
    summary="Which accelerators do a job, best first, and why the others do not.",
    group="Hardware",
    inputs=AcceleratorChoiceInputs,
    answer=estimate,
    outputs=OUTPUTS,
    first=("gpus", "need", "token_time", "gpu_hours"),
    topic=TOPIC,
    is_search=True,
)
