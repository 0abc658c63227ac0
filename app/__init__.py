"""Version and docstring of the package."""
