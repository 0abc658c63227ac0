"""The estimate `parallelism-plan`: the best layouts of a model on a cluster."""

from app.estimator.estimates.parallelism_plan.parallelism_plan import ENTRY

__all__ = ["ENTRY"]
