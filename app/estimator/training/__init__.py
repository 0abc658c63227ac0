"""Time and cost of training."""
