"""What running costs: failures, checkpoints, money."""
