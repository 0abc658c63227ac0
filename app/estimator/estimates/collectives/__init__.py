"""The estimate `collectives`: time and bytes of a collective, and what limits it."""
