"""Questions and cards in the formats of other programs."""
