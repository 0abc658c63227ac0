"""Memory formulas of training and inference."""
