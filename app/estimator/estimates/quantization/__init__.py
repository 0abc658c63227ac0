"""The estimate `quantization`: what a narrower format changes, and what it does not."""
