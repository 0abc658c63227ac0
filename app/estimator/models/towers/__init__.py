"""What a model sees with, beside its language model."""
