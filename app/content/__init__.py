"""The course: Markdown files read into values, checked, and kept live."""
