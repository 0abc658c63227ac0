"""The estimate `collectives`: time and bytes of a collective, and what limits it."""

from app.estimator.estimates.collectives.collectives import ENTRY

__all__ = ["ENTRY"]
