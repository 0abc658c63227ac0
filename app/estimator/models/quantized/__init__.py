"""How the checkpoints of quantized models store their weights."""
