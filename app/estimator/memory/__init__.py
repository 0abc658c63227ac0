"""Memory of training and inference."""
