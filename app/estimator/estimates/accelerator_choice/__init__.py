"""The estimate `accelerator-choice`: which accelerators do a job, best first."""

from app.estimator.estimates.accelerator_choice.accelerator_choice import ENTRY

__all__ = ["ENTRY"]
