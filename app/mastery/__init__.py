"""Mastery of objectives and the score forecast."""
