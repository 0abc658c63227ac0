"""One folder for each estimate that people ask for."""
