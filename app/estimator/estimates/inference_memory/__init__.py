"""The estimate `inference-memory`: what serving a model takes on each GPU."""
