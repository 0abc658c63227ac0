"""Pure sizing numbers: one registry of estimates, standard library only."""
