"""Numbers that content computes: quantities, estimates, expressions, templates."""
