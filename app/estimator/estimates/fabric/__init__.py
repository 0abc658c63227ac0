"""The estimate `fabric`: switches and cables of the networks of a cluster."""
