"""How near the estimator comes to published values: what the app itself never runs."""

from pathlib import Path

DATA = Path(__file__).parent / "data"
