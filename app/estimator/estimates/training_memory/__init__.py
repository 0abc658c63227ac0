"""The estimate `training-memory`: what training takes on each GPU and stage."""

from app.estimator.estimates.training_memory.training_memory import ENTRY

__all__ = ["ENTRY"]
