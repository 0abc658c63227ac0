"""Lesson pages, notes, search."""
