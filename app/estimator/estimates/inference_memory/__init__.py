"""The estimate `inference-memory`: what serving a model takes on each GPU."""

from app.estimator.estimates.inference_memory.inference_memory import ENTRY

__all__ = ["ENTRY"]
