"""The estimate `fabric`: switches and cables of the networks of a cluster."""

from app.estimator.estimates.fabric.fabric import ENTRY

__all__ = ["ENTRY"]
