"""Card states, the review log, and FSRS."""
