"""Live sizing forms over the estimator, and the same answers as text and files."""
