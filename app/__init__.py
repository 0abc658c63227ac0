"""Headroom: study and exam preparation with live sizing calculators."""
