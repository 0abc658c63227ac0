"""The estimate `storage`: data, checkpoints, and how often to save."""

from app.estimator.estimates.storage.storage import ENTRY

__all__ = ["ENTRY"]
