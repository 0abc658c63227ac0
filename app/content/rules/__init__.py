"""The rules that look at one item or file: each reports, none raises."""
