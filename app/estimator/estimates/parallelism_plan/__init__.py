"""The estimate `parallelism-plan`: the best layouts of a model on a cluster."""
