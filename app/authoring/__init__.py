"""Author pages: problems, statistics, preview, regrading."""
