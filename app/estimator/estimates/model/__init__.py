"""The estimate `model`: what a model consists of, counted from its shape."""
