"""Numeric: a number to be typed, with tolerance and unit."""
