"""What is remembered: cards, the log of their grades, and what follows from it."""
