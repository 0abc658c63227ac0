"""The estimate `model`: what a model consists of, counted from its shape."""

from app.estimator.estimates.model.model import ENTRY

__all__ = ["ENTRY"]
