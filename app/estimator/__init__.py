"""Sizing formulas and their data, on the standard library alone."""
