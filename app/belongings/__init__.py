"""Everything that is kept about a learner: taken along, or erased."""
