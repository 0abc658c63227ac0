"""Markdown to safe HTML: no raw tags, no inline style, numbers that show their work."""
