"""Accelerators, networks, prices, power: data and formulas."""
