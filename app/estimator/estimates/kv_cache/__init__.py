"""The estimate `kv-cache`: what the cache of a model takes, per token and in all."""

from app.estimator.estimates.kv_cache.kv_cache import ENTRY

__all__ = ["ENTRY"]
