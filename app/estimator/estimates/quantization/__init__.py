"""The estimate `quantization`: what a narrower format changes, and what it does not."""

from app.estimator.estimates.quantization.quantization import ENTRY

__all__ = ["ENTRY"]
