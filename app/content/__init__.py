"""The course: files read, checked and served as a library."""
