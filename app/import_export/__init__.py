"""Import and export of questions and cards in the formats of other programs."""
