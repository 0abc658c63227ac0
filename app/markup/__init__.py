"""Markdown to checked HTML."""
