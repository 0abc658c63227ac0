"""What would turn the verdict of `training-time`."""

from app.estimator.estimate import VerdictFlip
from app.estimator.estimates.training_time.asked import TrainingTimeInputs
from app.estimator.estimates.training_time.compute import TrainingTimeResult
from app.estimator.units import format_number

_LIGHTER = {
    "recompute": "Recomputation",
    "zero": "ZeRO stage",
    "tensor_parallel": "Tensor parallel",
}

_FASTER = {"global_batch": "Global batch", "interleave": "Interleaving"}


def changes(asked: TrainingTimeInputs, run: TrainingTimeResult) -> tuple[VerdictFlip, ...]:
    """What keeps the deadline, fits in memory or fills the pipeline."""
    changes = []
    if run.enough is not None:
        now, then = format_number(asked.gpus), format_number(run.enough)
        changes.append(VerdictFlip("gpus", "GPUs", now, then, "In time."))
    if run.lighter is not None:
        field, then = run.lighter
        label, now = _LIGHTER[field], str(getattr(asked, field))
        changes.append(VerdictFlip(field, label, now, then, "Fits in memory."))
    nows = {"global_batch": run.plan.global_batch, "interleave": run.plan.pieces}
    for field, value, mfu in run.faster:
        now, then = format_number(nows[field]), format_number(value)
        words = f"{mfu:.0%} of the peak."
        changes.append(VerdictFlip(field, _FASTER[field], now, then, words))
    return tuple(changes)
