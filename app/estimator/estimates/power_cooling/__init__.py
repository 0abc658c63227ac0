"""The estimate `power-cooling`: power, current, heat and racks of a site."""

from app.estimator.estimates.power_cooling.power_cooling import ENTRY

__all__ = ["ENTRY"]
