"""One module per estimate for its computation, and one for its report."""
