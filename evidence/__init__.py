"""Compare the estimator with published values. The app itself never imports this package."""

from pathlib import Path

DATA = Path(__file__).parent / "data"
