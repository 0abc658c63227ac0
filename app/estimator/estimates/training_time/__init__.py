"""The estimate `training-time`: a step, a run, and what the run costs."""

from app.estimator.estimates.training_time.training_time import ENTRY

__all__ = ["ENTRY"]
