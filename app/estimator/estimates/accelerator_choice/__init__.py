"""The estimate `accelerator-choice`: which accelerators do a job, best first."""
