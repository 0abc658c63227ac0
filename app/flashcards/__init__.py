"""Flashcards: what is due, grading, undo, and the memory behind them."""
