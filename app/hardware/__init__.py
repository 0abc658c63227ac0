"""Hardware: every part of the catalog, listed, compared, and one page for each."""
