"""The estimate `latency`: time to the first token and per token, and what bounds it."""

from app.estimator.estimates.latency.latency import ENTRY

__all__ = ["ENTRY"]
