"""How long a step takes: products, traffic, pipelines, whole runs."""
