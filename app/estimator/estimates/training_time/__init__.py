"""The estimate `training-time`: a step, a run, and what the run costs."""
