"""The estimate `cost`: renting accelerators against owning them."""

from app.estimator.estimates.cost.cost import ENTRY

__all__ = ["ENTRY"]
