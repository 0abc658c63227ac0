"""One module or folder for each format, what they share, and the registry of all."""
