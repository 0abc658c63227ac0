"""The estimate `serving-capacity`: from traffic and targets to GPUs and nodes."""

from app.estimator.estimates.serving_capacity.serving_capacity import ENTRY

__all__ = ["ENTRY"]
