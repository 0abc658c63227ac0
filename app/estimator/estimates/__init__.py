"""One estimate in two modules: its computation and its report."""
