"""What a service of many requests does: engines, load, queues, simulation."""
