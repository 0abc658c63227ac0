"""The estimate `mig`: which instances fit together on one card."""

from app.estimator.estimates.mig.mig import ENTRY

__all__ = ["ENTRY"]
