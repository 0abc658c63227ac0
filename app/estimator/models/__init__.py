"""Model architectures: parameters, caches, number formats."""
