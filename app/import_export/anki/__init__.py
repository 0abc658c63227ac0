"""Read and write Anki packages."""
