"""What would turn the verdict of `training-time`."""

from app.estimator.estimate import Change
from app.estimator.estimates.training_time.asked import TrainingTime
from app.estimator.estimates.training_time.compute import Run
from app.estimator.units import format_number

_LIGHTER = {
    "recompute": "Recomputation",
    "zero": "ZeRO stage",
    "tensor_parallel": "Tensor parallel",
}


def changes(asked: TrainingTime, run: Run) -> tuple[Change, ...]:
    """What keeps the deadline, fits in memory or halves the bubble."""
    changes = []
    if run.enough is not None:
        now, then = format_number(asked.gpus), format_number(run.enough)
        changes.append(Change("gpus", "GPUs", now, then, "In time."))
    if run.lighter is not None:
        field, then = run.lighter
        label, now = _LIGHTER[field], str(getattr(asked, field))
        changes.append(Change(field, label, now, then, "Fits in memory."))
    pieces = 2 * run.plan.pieces
    stages = run.plan.pipeline * pieces
    if run.step.bubble > 0.1 * run.step.total and stages <= run.layers:
        now, then = str(run.plan.pieces), str(pieces)
        changes.append(
            Change("interleave", "Interleaving", now, then, "Half the bubble.")
        )
    return tuple(changes)
