"""The course: its files are read, checked and served."""
