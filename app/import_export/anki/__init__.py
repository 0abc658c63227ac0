"""Anki packages in and out."""
