"""Latency and throughput of inference."""
