"""Sizing formulas and their data; depends on the standard library only."""
