"""The recall (0..1) that cards come back at, until a learner sets another."""

RETENTION = 0.9
