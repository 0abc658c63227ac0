"""Writes the parts of the documents that are made from the code: `make docs`."""
