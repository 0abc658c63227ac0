"""The estimate `weights`: what a model takes in each number format."""

from app.estimator.estimates.weights.weights import ENTRY

__all__ = ["ENTRY"]
