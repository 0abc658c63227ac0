"""Accelerators, networks, prices, power: catalog data and formulas."""
