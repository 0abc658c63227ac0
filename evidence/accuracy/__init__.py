"""Accuracy of the estimates against published and measured values."""
