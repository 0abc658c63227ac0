"""Hardware: every part of the catalogue, listed, compared, and one page for each."""
